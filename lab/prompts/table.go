package prompts

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
)

// Comparison is a table of rules: for each size of the servers' caches and each load, with several numbers of routers.
type Comparison struct {
	Jobs Jobs
	// From and Until are the part of the trace that is measured, in seconds; what comes before From warms the caches.
	From, Until float64
	Servers     int
	Blocks      []int
	Loads       []float64 // tokens that come for each token that can be read
	Routers     []int
	Rules       []string // compared with the first
	Spread      time.Duration
	Seeds       int
}

// SetDefaults fills in what is empty.
func (c *Comparison) SetDefaults() {
	if len(c.Blocks) == 0 {
		c.Blocks = []int{2000, 6000}
	}
	if len(c.Loads) == 0 {
		c.Loads = []float64{0.6, 0.8, 1}
	}
	if len(c.Routers) == 0 {
		c.Routers = []int{1, 3, 10}
	}
	if len(c.Rules) == 0 {
		c.Rules = Rules()
	}
}

// parts of the trace are the pairs of the intervals, with the seeds.
const parts = 4

// cell is what came of a rule: for each seed and part of the trace.
type cell struct {
	mean, p99 []float64
	found     float64
}

// setting is what a cell is of.
type setting struct {
	blocks  int
	load    float64
	routers int
	rule    string
}

// WriteText plays all, so many runs at once, and writes the tables.
func (c *Comparison) WriteText(ctx context.Context, out io.Writer, parallel int) error {
	c.Jobs = slices.DeleteFunc(slices.Clone(c.Jobs), func(j Job) bool { return j.Offset >= c.Until })
	cells := map[setting]*cell{}
	var mu sync.Mutex
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, blocks := range c.Blocks {
		for _, load := range c.Loads {
			for _, routers := range c.Routers {
				for _, rule := range append(slices.Clip(c.Rules), noWait) {
					group.Go(func() error {
						if within.Err() != nil {
							return within.Err()
						}
						s := setting{blocks, load, routers, rule}
						one, err := c.cell(s)
						mu.Lock()
						defer mu.Unlock()
						cells[s] = one
						return err
					})
				}
			}
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s requests in %s, measured from %s on; %d servers, %d seeds. Times to the first token in s; in brackets 95 %% intervals.\n\n",
		stats.Thousands(len(c.Jobs)), stats.Span(c.Until), stats.Span(c.From), c.Servers, c.Seeds)
	for _, blocks := range c.Blocks {
		for _, load := range c.Loads {
			if err := c.table(cells, blocks, load).WriteText(out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Comparison) cell(s setting) (*cell, error) {
	one, found, blocks := &cell{}, 0, 0
	for seed := range c.Seeds {
		results, err := c.run(s, uint64(seed+1))
		if err != nil {
			return nil, err
		}
		var times [parts][]float64
		for _, r := range results {
			if r.Offset < c.From {
				continue
			}
			part := int(parts * (r.Offset - c.From) / (c.Until - c.From))
			times[part] = append(times[part], r.First)
			found, blocks = found+r.Found, blocks+r.Blocks
		}
		for _, t := range times {
			if len(t) == 0 {
				return nil, fmt.Errorf("prompts: no request from %gs to %gs in one of %d parts", c.From, c.Until, parts)
			}
			slices.Sort(t)
			one.mean = append(one.mean, mean(t))
			one.p99 = append(one.p99, t[int(math.Ceil(0.99*float64(len(t))))-1])
		}
	}
	one.found = float64(found) / float64(max(blocks, 1))
	return one, nil
}

// noWait is no rule but a bound: each prompt is read at once, without what any before it had. No router does better.
const noWait = "no wait"

func (c *Comparison) run(s setting, seed uint64) (results []Result, err error) {
	if s.rule != noWait {
		return Play(Config{
			Jobs: c.Jobs, Servers: c.Servers, Rate: c.rate(s.load), Blocks: s.blocks,
			Routers: s.routers, Rule: s.rule, Spread: c.Spread, Seed: seed,
		})
	}
	one := &server{rate: c.rate(s.load), kept: newCache(math.MaxInt)}
	for i := range c.Jobs {
		j := &job{Job: c.Jobs[i]}
		left := one.missing(j)
		one.kept.put(j.full())
		results = append(results, Result{
			Offset: j.Offset, First: startup.Seconds() + float64(left)/one.rate,
			Found: int((j.Read - left) / trace.BlockTokens), Blocks: len(j.Blocks),
		})
	}
	return results, nil
}

// rate is the tokens that a server must read in a second for a load.
func (c *Comparison) rate(load float64) float64 {
	tokens := 0.0
	for i := range c.Jobs {
		tokens += float64(c.Jobs[i].Read)
	}
	return tokens / c.Until / load / float64(c.Servers)
}

// table compares the rules at one load, and pilotfish with the rule that is best beside it: with as many routers, as one
// process that sees all, and of those without events.
func (c *Comparison) table(cells map[setting]*cell, blocks int, load float64) *stats.Grid {
	g := &stats.Grid{
		Title: fmt.Sprintf("%s blocks at each server, load %g: it reads %.0f tokens/s", stats.Thousands(blocks), load, c.rate(load)),
		Left:  1, Heads: [][]string{{"routers"}, {"rule"}},
	}
	for _, n := range c.Routers {
		g.Heads[0] = append(g.Heads[0], fmt.Sprint(n), "", "")
		g.Heads[1] = append(g.Heads[1], "mean", "p99", "found")
	}
	at := func(n int, rule string) *cell { return cells[setting{blocks, load, n, rule}] }
	for _, rule := range append(slices.Clip(c.Rules), noWait) {
		row := []string{rule}
		for _, n := range c.Routers {
			x := at(n, rule)
			row = append(row, fmt.Sprintf("%.2f", mean(x.mean)), fmt.Sprintf("%.2f", mean(x.p99)), fmt.Sprintf("%.3f", x.found))
		}
		g.Rows = append(g.Rows, row)
	}
	for _, beside := range []struct {
		of, than string
		routers  int // 0 is as many
		rivals   []string
	}{
		{c.Rules[0], "best with as many", 0, c.Rules},
		{c.Rules[0], "best in one process", c.Routers[0], c.Rules},
		{c.Rules[0], "best without events", 0, slices.DeleteFunc(slices.Clone(c.Rules), hasEvents)},
		{noWait, "best with as many", 0, c.Rules},
	} {
		row := []string{beside.of + " / " + beside.than}
		for _, n := range c.Routers {
			best := func(of func(*cell) []float64) string {
				var least []float64
				for _, rule := range beside.rivals {
					if strings.HasPrefix(rule, c.Rules[0]) { // pilotfish with one key is no rival
						continue
					}
					if x := of(at(cmp.Or(beside.routers, n), rule)); least == nil || mean(x) < mean(least) {
						least = x
					}
				}
				if least == nil {
					return "-"
				}
				ratio, _ := stats.Ratio(least, of(at(n, beside.of)))
				return ratio.Text(2, len(least))
			}
			row = append(row, best(func(x *cell) []float64 { return x.mean }), best(func(x *cell) []float64 { return x.p99 }), "")
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Rules are the names of all rules, pilotfish's over chains first.
func Rules() []string {
	return []string{
		"expected", "expected, 250 ms", "expected 1 block", "expected 2 blocks", "expected 4 blocks",
		"round-robin", "least-requests", "session-hash", "sglang", "llm-d", "llm-d approximate", "dynamo",
	}
}
