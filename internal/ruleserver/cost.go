package ruleserver

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// Cost is the least duration of joblets. It lets a laptop stand for a cluster: a
// joblet does its work and then sleeps on its core until its cost is over. The zero
// Cost adds nothing.
type Cost struct {
	fetch, shared, operators, output jobletCost

	// tail is 0, or the shape of a Pareto distribution with the mean 1. Each project
	// draws a factor from it that multiplies all its costs. The shape is more than 1;
	// the tail is heavier for smaller shapes.
	tail float64
	// seed chooses the factors. Servers with equal seeds draw equal factors.
	seed uint64

	slowness float64 // multiplies the duration of every joblet; 0 means 1
}

// maxTailFactor bounds the factor of a project.
const maxTailFactor = 1000

// jobletCost is the cost of one kind of joblet: base, and more for each item and
// each MiB (in memory) of the feed that the joblet reads.
type jobletCost struct {
	base, perItem, perMiB time.Duration
}

// costHeader is the request header in which a job brings its own cost, in the form
// that ParseCost reads.
const costHeader = "X-Cost"

// errCost says that the server cannot read the cost of a job.
type errCost struct{ err error }

func (e errCost) Error() string { return fmt.Sprintf("header %s: %v", costHeader, e.err) }
func (e errCost) Unwrap() error { return e.err }

// ParseCost reads a cost as the flag --cost gives it: parts separated by commas.
// A part is NAME=DURATION, for fetch, shared, operators and output, and may go on
// with +DURATION/item and +DURATION/MiB. Other parts are tail=SHAPE and
// seed=NUMBER. For example
//
//	fetch=2s+40ms/MiB,shared=400ms,operators=800ms+5us/item,output=100ms,tail=1.5,seed=7
func ParseCost(text string) (Cost, error) {
	var c Cost
	if text == "" {
		return c, nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if seen[name] {
			return Cost{}, fmt.Errorf("cost: %s is given twice", name)
		}
		seen[name] = true
		var err error
		switch name {
		case "fetch":
			c.fetch, err = parseJobletCost(value)
		case "shared":
			c.shared, err = parseJobletCost(value)
		case "operators":
			c.operators, err = parseJobletCost(value)
		case "output":
			c.output, err = parseJobletCost(value)
		case "tail":
			c.tail, err = strconv.ParseFloat(value, 64)
			if err != nil || !(c.tail > 1) || math.IsInf(c.tail, 0) {
				err = fmt.Errorf("want a number greater than 1, got %q", value)
			}
		case "seed":
			c.seed, err = strconv.ParseUint(value, 10, 64)
			if err != nil {
				err = fmt.Errorf("want a whole number, got %q", value)
			}
		default:
			err = fmt.Errorf("unknown; known are fetch, shared, operators, output, tail, seed")
		}
		if err != nil {
			return Cost{}, fmt.Errorf("cost: %s: %w", name, err)
		}
	}
	return c, nil
}

// UnmarshalText lets flags be of type Cost.
func (c *Cost) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCost(string(text))
	return err
}

func parseJobletCost(text string) (c jobletCost, err error) {
	for i, part := range strings.Split(text, "+") {
		duration, unit, _ := strings.Cut(part, "/")
		d, err := time.ParseDuration(duration)
		if err != nil || d < 0 {
			return c, fmt.Errorf("want a duration such as 2s or 400ms, got %q", duration)
		}
		switch {
		case unit == "" && i == 0:
			c.base = d
		case unit == "item":
			c.perItem = d
		case unit == "MiB":
			c.perMiB = d
		default:
			return c, fmt.Errorf("want DURATION, DURATION/item or DURATION/MiB, got %q", part)
		}
	}
	return c, nil
}

// of is the cost of a joblet for a feed with that many items and bytes.
func (c Cost) of(kind executor.Kind, project string, items int, bytes int64) time.Duration {
	one := [...]jobletCost{
		executor.FeedSource:      c.fetch,
		executor.SharedOperators: c.shared,
		executor.Operators:       c.operators,
		executor.OutputFeed:      c.output,
	}[kind]
	seconds := one.base.Seconds() + one.perItem.Seconds()*float64(items) +
		one.perMiB.Seconds()*float64(bytes)/(1<<20)
	seconds *= c.factor(project)
	return time.Duration(min(seconds, math.MaxInt64/2/1e9) * float64(time.Second))
}

// factor depends only on the project's name and the seed, so that all servers agree
// which projects are heavy.
func (c Cost) factor(project string) float64 {
	if c.tail == 0 {
		return 1
	}
	hash := fnv.New64a()
	hash.Write([]byte(project))
	rng := rand.New(rand.NewPCG(c.seed, hash.Sum64()))
	u := 1 - rng.Float64() // in (0, 1]
	scale := (c.tail - 1) / c.tail
	return min(scale*math.Pow(u, -1/c.tail), maxTailFactor)
}

// extend waits until a joblet that began at begin has lasted as long as its cost, or
// as long as a slow server takes.
func (c Cost) extend(ctx context.Context, begin time.Time, key executor.Key, feed *rules.Feed) error {
	spent := time.Since(begin)
	lasts := max(c.of(key.Kind, key.Project, feed.Len(), feed.Bytes()), spent)
	left := time.Duration(float64(lasts)*max(c.slowness, 1)) - spent
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return executor.ErrClosed
	}
}
