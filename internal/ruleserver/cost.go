package ruleserver

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// Cost says how long joblets last at least, so that a laptop can stand for a
// cluster: a joblet does its work and then sleeps, holding its core, until its
// cost is over. The zero Cost adds nothing.
type Cost struct {
	Fetch, Shared, Operators, Output JobletCost

	// Tail, when not zero, multiplies all costs of a project by a factor of its
	// own: from a Pareto distribution with this shape, the mean 1 and a bound of
	// MaxTailFactor. Smaller shapes have heavier tails; it must exceed 1.
	Tail float64
	// Seed chooses the projects' factors. Servers with equal seeds agree.
	Seed uint64
}

// MaxTailFactor bounds the factor of a project.
const MaxTailFactor = 1000

// JobletCost is what one kind of joblet costs: Base, and more for each item and
// each MiB (in memory) of the feed that it makes or works on.
type JobletCost struct {
	Base, PerItem, PerMiB time.Duration
}

// CostHeader is the request header in which a job brings its own cost, in the
// form that ParseCost reads, to a server that trusts it.
const CostHeader = "X-Cost"

// ParseCost reads a cost as the command line gives it: parts separated by
// commas, each NAME=DURATION for fetch, shared, operators and output, where
// DURATION may go on with +DURATION/item and +DURATION/MiB, and tail=SHAPE and
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
			c.Fetch, err = parseJobletCost(value)
		case "shared":
			c.Shared, err = parseJobletCost(value)
		case "operators":
			c.Operators, err = parseJobletCost(value)
		case "output":
			c.Output, err = parseJobletCost(value)
		case "tail":
			c.Tail, err = strconv.ParseFloat(value, 64)
			if err != nil || !(c.Tail > 1) || math.IsInf(c.Tail, 0) {
				err = fmt.Errorf("want a number greater than 1, got %q", value)
			}
		case "seed":
			c.Seed, err = strconv.ParseUint(value, 10, 64)
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

func parseJobletCost(text string) (c JobletCost, err error) {
	for i, part := range strings.Split(text, "+") {
		duration, unit, _ := strings.Cut(part, "/")
		d, err := time.ParseDuration(duration)
		if err != nil || d < 0 {
			return c, fmt.Errorf("want a duration such as 2s or 400ms, got %q", duration)
		}
		switch {
		case unit == "" && i == 0:
			c.Base = d
		case unit == "item":
			c.PerItem = d
		case unit == "MiB":
			c.PerMiB = d
		default:
			return c, fmt.Errorf("want DURATION, DURATION/item or DURATION/MiB, got %q", part)
		}
	}
	return c, nil
}

// of gives the cost of a joblet over a feed of so many items and bytes.
func (c Cost) of(kind executor.Kind, project string, items int, bytes int64) time.Duration {
	one := [...]JobletCost{
		executor.FeedSource:      c.Fetch,
		executor.SharedOperators: c.Shared,
		executor.Operators:       c.Operators,
		executor.OutputFeed:      c.Output,
	}[kind]
	seconds := one.Base.Seconds() + one.PerItem.Seconds()*float64(items) +
		one.PerMiB.Seconds()*float64(bytes)/(1<<20)
	seconds *= c.factor(project)
	return time.Duration(min(seconds, math.MaxInt64/2/1e9) * float64(time.Second))
}

// factor draws from the project's name alone, so that all servers agree on
// which projects are heavy.
func (c Cost) factor(project string) float64 {
	if c.Tail == 0 {
		return 1
	}
	hash := fnv.New64a()
	hash.Write([]byte(project))
	rng := rand.New(rand.NewPCG(c.Seed, hash.Sum64()))
	u := 1 - rng.Float64() // in (0, 1]
	scale := (c.Tail - 1) / c.Tail
	return min(scale*math.Pow(u, -1/c.Tail), MaxTailFactor)
}
