package prompts

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
)

// Comparison makes one table of rules for each size of the servers' caches and each load.
type Comparison struct {
	jobs []trace.Job
	// from and until bound the measured part of the trace, in seconds; the part before fills the caches.
	from, until float64
	blocks      []int
	loads       []float64 // load: arriving tokens divided by the tokens that servers can read
	routers     []int
	rules       []*rule // compared with the first
	seeds       int
}

// Compare compares all rules on an hour of requests.
func Compare(jobs []trace.Job) *Comparison {
	return &Comparison{
		jobs: jobs, from: 20 * 60, until: 60 * 60, blocks: []int{2000, 6000}, loads: []float64{0.6, 0.8, 1}, routers: []int{1, 3, 10},
		rules: rules(), seeds: 3,
	}
}

const (
	// parts is the number of parts of the trace. Each part with each seed is one sample of a bootstrap interval.
	parts = 4
	// servers is the number of servers.
	servers = 8
	// spread is the resolution of the trace's times.
	spread = 3 * time.Second
)

// cell is the result of a rule: means and percentiles for each seed and part of the trace.
type cell struct {
	mean, p99 []float64
	found     float64
}

// setting identifies a cell of a table.
type setting struct {
	routers int
	rule    *rule
}

// WriteText simulates all cells and writes the tables.
func (c *Comparison) WriteText(ctx context.Context, out io.Writer) error {
	c.jobs = slices.DeleteFunc(slices.Clone(c.jobs), func(j trace.Job) bool { return j.Offset >= c.until })
	fmt.Fprintf(out, "%s requests in %s, measured from %s on; %d servers, %d seeds. Times to the first token in s; in brackets 95 %% intervals.\n\n",
		stats.Thousands(len(c.jobs)), stats.Span(c.until), stats.Span(c.from), servers, c.seeds)
	for _, blocks := range c.blocks {
		for _, load := range c.loads {
			cells, err := c.cells(ctx, blocks, load)
			if err != nil {
				return err
			}
			if err := c.table(cells, blocks, load).WriteText(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// cells simulates the cells of one table.
func (c *Comparison) cells(ctx context.Context, blocks int, load float64) (map[setting]*cell, error) {
	cells := map[setting]*cell{}
	var mu sync.Mutex
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, routers := range c.routers {
		for _, rule := range append(slices.Clip(c.rules), allKnown, noWait) {
			group.Go(func() error {
				if within.Err() != nil {
					return context.Cause(within)
				}
				one, err := c.cell(config{
					jobs: c.jobs, servers: servers, rate: c.rate(load), blocks: blocks, routers: routers, rule: rule, spread: spread,
				})
				mu.Lock()
				defer mu.Unlock()
				cells[setting{routers, rule}] = one
				return err
			})
		}
	}
	return cells, group.Wait()
}

func (c *Comparison) cell(cfg config) (*cell, error) {
	one, found, blocks := &cell{}, 0, 0
	for range c.seeds {
		cfg.seed++
		var times [parts][]float64
		for _, r := range play(cfg) {
			if r.offset < c.from {
				continue
			}
			part := int(parts * (r.offset - c.from) / (c.until - c.from))
			times[part] = append(times[part], r.first)
			found, blocks = found+r.found, blocks+r.blocks
		}
		for _, t := range times {
			if len(t) == 0 {
				return nil, fmt.Errorf("prompts: no request from %gs to %gs in one of %d parts", c.from, c.until, parts)
			}
			slices.Sort(t)
			one.mean = append(one.mean, mean(t))
			one.p99 = append(one.p99, t[int(math.Ceil(0.99*float64(len(t))))-1])
		}
	}
	one.found = float64(found) / float64(max(blocks, 1))
	return one, nil
}

// rate is the prefill rate of a server at a load, in tokens per second.
func (c *Comparison) rate(load float64) float64 {
	tokens := 0.0
	for i := range c.jobs {
		tokens += float64(c.jobs[i].Read)
	}
	return tokens / c.until / load / servers
}

// table compares the rules at one load. Its last rows divide pilotfish's times by those of the best rival: with as many routers, with
// one router, and without events.
func (c *Comparison) table(cells map[setting]*cell, blocks int, load float64) *stats.Grid {
	g := &stats.Grid{
		Title: fmt.Sprintf("%s blocks at each server, load %g: it reads %.0f tokens/s", stats.Thousands(blocks), load, c.rate(load)),
		Left:  1, Heads: [][]string{{"routers"}, {"rule"}},
	}
	for _, n := range c.routers {
		g.Heads[0] = append(g.Heads[0], fmt.Sprint(n), "", "")
		g.Heads[1] = append(g.Heads[1], "mean", "p99", "found")
	}
	for _, rule := range append(slices.Clip(c.rules), allKnown, noWait) {
		row := []string{rule.name}
		for _, n := range c.routers {
			x := cells[setting{n, rule}]
			row = append(row, fmt.Sprintf("%.2f", mean(x.mean)), fmt.Sprintf("%.2f", mean(x.p99)), fmt.Sprintf("%.3f", x.found))
		}
		g.Rows = append(g.Rows, row)
	}
	type comparison struct {
		of      *rule
		than    string
		routers int  // 0: as many as the other rule has
		events  bool // rivals may have them
	}
	with := []comparison{
		{c.rules[0], "best with as many", 0, true},
		{c.rules[0], "best in one process", c.routers[0], true},
		{c.rules[0], "best without events", 0, false},
	}
	for _, rule := range c.rules {
		if rule.costs == nil && rule.events {
			with = append(with, comparison{rule, "best with as many", 0, true}, comparison{rule, "best in one process", c.routers[0], true})
		}
	}
	for _, beside := range append(with, comparison{allKnown, "best with as many", 0, true}, comparison{noWait, "best with as many", 0, true}) {
		row := []string{beside.of.name + " / " + beside.than}
		for _, n := range c.routers {
			best := func(of func(*cell) []float64) string {
				var least []float64
				for _, rule := range c.rules {
					if rule.costs == nil || rule.events && !beside.events { // pilotfish with one key is no rival
						continue
					}
					if x := of(cells[setting{cmp.Or(beside.routers, n), rule}]); least == nil || mean(x) < mean(least) {
						least = x
					}
				}
				ratio, _ := stats.Ratio(least, of(cells[setting{n, beside.of}]))
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
