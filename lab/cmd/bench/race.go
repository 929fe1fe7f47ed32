//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/judge"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/lab/workload"
)

type raceCommand struct {
	Pilotfish string `default:"bin/pilotfish" placeholder:"PATH" help:"Where pilotfish is."`
	Envoy     string `default:"bin/envoy/bin/envoy" placeholder:"PATH" help:"Where Envoy is."`
	Rounds    int    `default:"3" help:"How often everything is measured, each time with other traces."`
	Chart     string `type:"path" placeholder:"FILE" help:"Draw the first columns there, as SVG."`

	length time.Duration // of the traces
	jobs   int           // of each
}

// The reference servers of an entrant, and the virtual cores of each. A joblet sleeps on its core.
const raceServers, raceCores = 4, 8

// The traces of a race: how jobs arrive, the share of all cores that they keep busy without
// fetches, and the mean fetch of their projects over their mean work. Those of equal seeds have the same jobs.
var raced = []struct {
	name        string
	pattern     workload.Pattern
	load, fetch float64
	seed        uint64
	told        bool // the servers do not learn lengths: they order by Job-Expected, where it comes, and by arrival
}{
	{"schedules, load 0.6", "schedules", 0.6, 1, 7000, false},
	{"schedules, load 0.85", "schedules", 0.85, 1, 7001, false},
	{"sources, load 0.7, slow fetches", "sources", 0.7, 4, 7002, false},
	{"schedules, load 0.85, servers that order by what they are told", "schedules", 0.85, 1, 7001, true},
}

// measurement is one entrant with one trace of a round.
type measurement struct {
	peer
	trace   string
	figures []figure
	err     error
}

// Run measures every entrant with every trace of a round at the same time, each before servers
// of its own with nothing in their caches. What else happens on the machine meets all.
// Virtual cores sleep, so that they do not disturb each other; the column "sent late" shows it.
func (c *raceCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	dir, err := os.MkdirTemp("", "race")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &results{setting: fmt.Sprintf("%d servers of %d virtual cores, %d jobs in %v, %d rounds\nTimes are in seconds.",
		raceServers, raceCores, c.jobs, c.length, c.Rounds)}
	there := r.present(c.entrants(), nil)
	for round := range c.Rounds {
		fmt.Fprintf(console.Err, "round %d of %d: it takes %v, and as long as the last jobs wait\n", round+1, c.Rounds, c.length)
		var all []*measurement
		var running sync.WaitGroup
		for i, t := range raced {
			jobs, err := c.draw(i, round)
			if err != nil {
				return err
			}
			for _, p := range there {
				m, dir := &measurement{peer: p, trace: t.name}, filepath.Join(dir, fmt.Sprint(len(all)))
				all = append(all, m)
				running.Go(func() { m.figures, m.err = c.one(ctx, dir, &p, jobs, t.told) })
			}
		}
		running.Wait()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, m := range all {
			r.add(m.trace, m.name, m.figures, m.err)
		}
	}
	if c.Chart != "" {
		if err := os.WriteFile(c.Chart, r.svg(), 0o644); err != nil {
			return err
		}
	}
	if err := r.WriteText(console.Out); err != nil {
		return err
	}
	ordered, told := r.table(raced[1].name), r.table(raced[3].name)
	_, err = fmt.Fprintf(console.Out, "The same jobs, pilotfish before servers that learn lengths, the others before servers that go by arrival:\n%s",
		ordered.ratios(told))
	return err
}

const threeSidecars = "pilotfish, three sidecars"

// entrants are pilotfish with one and with three sidecars, and its peers.
func (c *raceCommand) entrants() []peer {
	all := peers(c.Envoy, []string{"pilotfish, one sidecar=" + c.Pilotfish, threeSidecars + "=" + c.Pilotfish})
	return slices.DeleteFunc(all, func(p peer) bool { return p.name == meshName })
}

// draw draws the jobs of a trace: the same for all entrants of a round.
func (c *raceCommand) draw(number, round int) ([]trace.Job, error) {
	t := raced[number]
	s := judge.Setting{Load: t.load, Fetch: t.fetch, Workload: workload.Default()}
	s.Fleet = sim.Fleet{Upstreams: raceServers, Cores: raceCores}
	w := &s.Workload
	w.Pattern, w.Jobs, w.Duration, w.StartHour, w.Static, w.Submitters = t.pattern, c.jobs, c.length.Seconds(), 9, true, 30
	// A job or a fetch that lasts as long as the trace would decide alone.
	w.MaxWork, w.MaxView, w.MaxBytes = 20, 10, 50e6
	jobs, _, err := s.Jobs(t.seed + uint64(10*round))
	return jobs, err
}

// one measures an entrant before servers of its own.
func (c *raceCommand) one(ctx context.Context, dir string, e *peer, jobs []trace.Job, told bool) ([]figure, error) {
	servers, err := startServers(raceServers, raceCores, told)
	if err != nil {
		return nil, err
	}
	defer servers.close()
	var targets []string
	processes := 1
	if e.name == threeSidecars {
		processes = 3
	}
	for i := range processes {
		s := setting{Dir: filepath.Join(dir, fmt.Sprint(i)), Upstreams: servers.addresses}
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return nil, err
		}
		p, address, err := e.start(ctx, s, 64<<10)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		targets = append(targets, "http://"+address)
	}
	return servers.play(ctx, targets, jobs)
}
