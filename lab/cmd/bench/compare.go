//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
)

type compareCommand struct {
	Pilotfish []string      `placeholder:"NAME=PATH" help:"A pilotfish to measure; repeat to compare versions. Without it: bin/pilotfish, and bin/previous as the release before."`
	Envoy     string        `default:"bin/envoy/bin/envoy" help:"Path of Envoy."`
	Rounds    int           `default:"10" help:"Number of rounds."`
	Duration  time.Duration `default:"3s" help:"Duration of each load, in whole seconds."`
	Peer      []string      `placeholder:"TEXT" help:"Measure only peers whose name contains this; repeat for more."`
	Scenario  []string      `placeholder:"TEXT" help:"Measure only scenarios whose name contains this; repeat for more."`

	waiting  int      // number of waiting jobs in the memory scenario
	dir, wrk string   // paths of the temporary folder and of wrk
	stubs    *stubs   // the round's upstreams
	bodies   [][]byte // the scenario's
}

// Run measures in rounds: in each round, every scenario of every peer once, starting
// with a different peer. So other load on the machine affects all peers.
func (c *compareCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	if c.Pilotfish == nil {
		c.Pilotfish = []string{"pilotfish=bin/pilotfish", previousName + "=bin/previous"}
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)

	r := &results{setting: fmt.Sprintf("%d rounds of %v", c.Rounds, c.Duration)}
	there := r.present(peers(c.Envoy, c.Pilotfish), c.Peer)
	if c.wrk = installed("wrk"); c.wrk == "" {
		r.missing = append(r.missing, "wrk: not installed; without it there is no load")
	}
	for round := range c.Rounds {
		first := round % max(1, len(there))
		for _, s := range scenarios(c.waiting) {
			if !named(s.name, c.Scenario) || c.wrk == "" && !s.waits {
				continue
			}
			fmt.Fprintf(console.Err, "round %d of %d: %s\n", round+1, c.Rounds, s.name)
			if err := c.round(ctx, &s, slices.Concat(there[first:], there[:first]), r); err != nil {
				return err
			}
		}
	}
	return r.WriteText(console.Out)
}

// present returns the peers that are wanted and installed, and reports the wanted others as missing.
func (r *results) present(all []peer, wanted []string) (there []peer) {
	for _, p := range all {
		switch {
		case !named(p.name, wanted):
		case !p.installed():
			r.missing = append(r.missing, fmt.Sprintf("%s: not installed, needs %s", p.name, p.needs))
		default:
			there = append(there, p)
		}
	}
	return there
}

// named reports whether there are no texts, or one of them starts at a word of the name: "4 KB" does not
// match "64 KB".
func named(name string, texts []string) bool {
	return len(texts) == 0 || slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(" "+name, " "+t) })
}

// round measures a scenario of all peers once, with new upstreams.
func (c *compareCommand) round(ctx context.Context, s *scenario, order []peer, r *results) (err error) {
	if c.stubs, err = startStubs(s.upstreams); err != nil {
		return err
	}
	defer c.stubs.close()
	if err := c.prepare(s); err != nil {
		return err
	}
	got := map[string][]figure{}
	if !s.waits {
		if got[direct], err = c.underLoad(ctx, s, nil, c.stubs.addresses[0]); err != nil {
			r.add(s.name, direct, nil, err) // other rounds can succeed
			return context.Cause(ctx)
		}
	}
	for i := range order {
		p := &order[i]
		figures, err := c.one(ctx, s, p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.add(s.name, p.name, nil, err)
			continue
		}
		got[p.name] = figures
	}
	subject, _, _ := strings.Cut(c.Pilotfish[0], "=")
	r.add(s.name, direct, got[direct], nil)
	for i := range order {
		of := subject
		if order[i].past && strings.HasPrefix(order[i].name, meshName) {
			of = meshName
		}
		r.add(s.name, order[i].name, beside(got, order[i].name, of), nil)
	}
	return nil
}

// one measures a scenario of a peer.
func (c *compareCommand) one(ctx context.Context, s *scenario, p *peer) ([]figure, error) {
	proxy, address, err := p.start(ctx, setting{Dir: c.dir, Upstreams: c.stubs.addresses, Header: s.header}, s.body)
	if err != nil {
		return nil, err
	}
	defer proxy.stop()
	measure := c.underLoad
	if s.waits {
		measure = c.memory
	}
	figures, err := measure(ctx, s, proxy, address)
	if err != nil {
		err = fmt.Errorf("%w; the proxy's output: %s", err, proxy.said())
	}
	return figures, err
}

const (
	direct    = "no proxy" // the row that latencies are compared with
	latency   = "p50 us"
	cpuPerJob = "cpu us/job"
)

// beside returns a peer's figures of a round. It adds the difference to the latency without a proxy, and the ratio
// of the subject's CPU time to the peer's. Both are calculated within a round, because other load on the machine
// changes from round to round.
func beside(got map[string][]figure, peer, subject string) (all []figure) {
	value := func(of, name string) float64 {
		at := slices.IndexFunc(got[of], func(f figure) bool { return f.name == name })
		if at < 0 {
			return 0
		}
		return got[of][at].value
	}
	for _, f := range got[peer] {
		if f.name == latency {
			f = figure{"added " + latency, f.value - value(direct, latency)}
		}
		all = append(all, f)
		if own := value(subject, f.name); f.name == cpuPerJob && peer != subject && own > 0 && f.value > 0 {
			all = append(all, figure{subject + "'s cpu / this", own / f.value})
		}
	}
	return all
}
