package prompts

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"example.org/pilotfish/lab/stats"
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
	var all []setting
	for _, blocks := range c.Blocks {
		for _, load := range c.Loads {
			for _, routers := range c.Routers {
				for _, rule := range c.Rules {
					all = append(all, setting{blocks, load, routers, rule})
				}
			}
		}
	}
	cells, err := c.play(ctx, all, parallel)
	if err != nil {
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

// play plays every setting with every seed.
func (c *Comparison) play(ctx context.Context, all []setting, parallel int) (map[setting]*cell, error) {
	cells := map[setting]*cell{}
	var mu sync.Mutex
	var fault error
	next := make(chan setting)
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() {
			for s := range next {
				one, err := c.cell(s)
				mu.Lock()
				cells[s] = one
				if err != nil {
					fault = err
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range all {
		if ctx.Err() != nil {
			break
		}
		next <- s
	}
	close(next)
	group.Wait()
	if fault == nil {
		fault = ctx.Err()
	}
	return cells, fault
}

func (c *Comparison) cell(s setting) (*cell, error) {
	one, found, blocks := &cell{}, 0, 0
	for seed := range c.Seeds {
		results, err := Play(Config{
			Jobs: c.Jobs, Servers: c.Servers, Rate: c.rate(s.load), Blocks: s.blocks,
			Routers: s.routers, Rule: s.rule, Spread: c.Spread, Seed: uint64(seed + 1),
		})
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

// rate is the tokens that a server must read in a second for a load.
func (c *Comparison) rate(load float64) float64 {
	tokens := 0.0
	for i := range c.Jobs {
		tokens += float64(c.Jobs[i].Read)
	}
	return tokens / c.Until / load / float64(c.Servers)
}

// table compares the rules at one load, and pilotfish with the rule that is best beside it: with as many routers, and
// as one process that sees all.
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
	for _, rule := range c.Rules {
		row := []string{rule}
		for _, n := range c.Routers {
			x := at(n, rule)
			row = append(row, fmt.Sprintf("%.2f", mean(x.mean)), fmt.Sprintf("%.2f", mean(x.p99)), fmt.Sprintf("%.3f", x.found))
		}
		g.Rows = append(g.Rows, row)
	}
	for _, one := range []bool{false, true} {
		row := []string{c.Rules[0] + " / best with as many"}
		if one {
			row[0] = c.Rules[0] + " / best in one process"
		}
		for _, n := range c.Routers {
			others := n
			if one {
				others = c.Routers[0]
			}
			best := func(of func(*cell) []float64) string {
				var least []float64
				for _, rule := range c.Rules[1:] {
					if strings.HasPrefix(rule, c.Rules[0]) { // pilotfish with one key is no rival
						continue
					}
					if x := of(at(others, rule)); least == nil || mean(x) < mean(least) {
						least = x
					}
				}
				ratio, _ := stats.Ratio(least, of(at(n, c.Rules[0])))
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
