//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
)

type compareCommand struct {
	Pilotfish []string      `default:"pilotfish=bin/pilotfish" placeholder:"NAME=PATH" help:"A pilotfish to measure; repeat to compare versions."`
	Envoy     string        `default:"bin/envoy/bin/envoy" help:"Where Envoy is."`
	Rounds    int           `default:"3" help:"How often everything is measured."`
	Duration  time.Duration `default:"3s" help:"How long each load lasts, in whole seconds."`
	Waiting   int           `default:"10000" help:"How many jobs wait at one time."`
	Probes    int           `default:"200" help:"How many jobs are submitted one after the other."`
	Stream    int64         `default:"2000000000" help:"Bytes of the long answer."`
	Quick     bool          `help:"Measure only the most telling scenarios."`
	Peer      []string      `placeholder:"TEXT" help:"Measure only peers whose name contains this; repeat for more."`
	Scenario  []string      `placeholder:"TEXT" help:"Measure only scenarios whose name contains this; repeat for more."`
	JSON      string        `name:"json" placeholder:"FILE" help:"Write every figure here."`
	Builtin   bool          `help:"Submit without wrk."`
	Settle    time.Duration `default:"1s" help:"How long memory is left alone before it is measured."`
	Patience  time.Duration `default:"3s" help:"How long no further job may reach an upstream before those that wait are counted."`
	Limit     time.Duration `default:"45m" help:"Give up after this time."`
}

// Run measures in rounds: within a round, every scenario of every peer once,
// each round beginning with another peer. So what else the machine does
// falls on all of them.
func (c *compareCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	r := newResults(pilotfishPeer(c.Pilotfish[0]).name)
	var there []peer
	for _, p := range peers(self, c.Envoy, c.Pilotfish) {
		switch {
		case !named(p.name, c.Peer) && p.name != direct:
		case p.name != direct && p.program == "":
			r.Missing = append(r.Missing, fmt.Sprintf("%s: not installed, needs %s", p.name, p.needs))
		default:
			there = append(there, p)
			r.Peers = append(r.Peers, p.name)
		}
	}
	wrkPath := installed("wrk")
	if c.Builtin {
		wrkPath = ""
	} else if wrkPath == "" {
		r.Missing = append(r.Missing, "wrk: not installed; bench submits the jobs itself, which takes more of the processor")
	}
	for _, s := range scenarios(c.Waiting, c.Probes, c.Stream) {
		if named(s.Name, c.Scenario) && (s.quick || !c.Quick) {
			r.Scenarios = append(r.Scenarios, s)
		}
	}
	for round := range c.Rounds {
		for i := range r.Scenarios {
			s := &r.Scenarios[i]
			fmt.Fprintf(console.Err, "round %d of %d: %s\n", round+1, c.Rounds, s.Name)
			order := slices.Concat(there[round%len(there):], there[:round%len(there)])
			if err := c.round(ctx, console.Err, dir, self, wrkPath, s, order, r); err != nil {
				return err
			}
		}
	}
	r.print(console.Out)
	if c.JSON != "" {
		if err := r.save(c.JSON); err != nil {
			return err
		}
	}
	if len(r.Failed) > 0 {
		return fmt.Errorf("%d measurements failed", len(r.Failed))
	}
	return nil
}

// named reports whether a name contains one of the texts from the beginning of a word on, if
// there are any: 4 KB is not in 64 KB.
func named(name string, texts []string) bool {
	return len(texts) == 0 || slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(" "+name, " "+t) })
}

// round measures a scenario of all peers once, before upstreams of its own.
func (c *compareCommand) round(ctx context.Context, log io.Writer, dir, self, wrkPath string, s *scenario, order []peer, r *results) error {
	upstreams, err := start(filepath.Join(dir, "upstreams"), self, "upstreams", "--ports", fmt.Sprint(s.Upstreams))
	if err != nil {
		return err
	}
	defer upstreams.stop()
	m := &machine{duration: c.Duration, settle: c.Settle, patience: c.Patience}
	if m.stubs, err = upstreams.addresses(ctx, s.Upstreams); err != nil {
		return err
	}
	jobs := bodies(s.Body)
	if m.loader = newBuiltin(jobs); wrkPath != "" {
		if m.loader, err = newWrk(wrkPath, dir, jobs); err != nil {
			return err
		}
	}
	got := map[string]map[string]float64{}
	for i := range order {
		p := &order[i]
		figures, err := one(ctx, dir, m, s, p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failure := strings.Join(strings.Fields(fmt.Sprintf("%s, %s: %v", p.name, s.Name, err)), " ")
			fmt.Fprintln(log, "failed:", failure)
			r.Failed = append(r.Failed, failure)
			continue
		}
		got[p.name] = figures
	}
	r.add(s.Name, got)
	return nil
}

// addresses reads where the stub upstreams listen.
func (p *process) addresses(ctx context.Context, n int) ([]string, error) {
	for {
		text, err := os.ReadFile(p.output)
		if err != nil {
			return nil, err
		}
		if lines := strings.Fields(string(text)); len(lines) == n && strings.HasSuffix(string(text), "\n") {
			return lines, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-p.ended:
			return nil, errors.New("the upstreams ended: " + p.said())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// one measures a scenario of a peer.
func one(ctx context.Context, dir string, m *machine, s *scenario, p *peer) (map[string]float64, error) {
	switch {
	case p.name == direct && !s.ofProcess:
		return s.measure(ctx, m, s, nil, m.stubs[0])
	case p.name == direct, p.name == relayName && s.ofProcess: // the relay's pipes take too many files
		return nil, nil
	}
	proxy, address, err := p.start(ctx, dir, m.stubs, s.Body)
	if err != nil {
		return nil, err
	}
	defer proxy.stop()
	figures, err := s.measure(ctx, m, s, proxy, address)
	if err != nil {
		err = fmt.Errorf("%w; the proxy said: %s", err, proxy.said())
	}
	return figures, err
}
