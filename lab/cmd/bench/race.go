//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/lab/judge"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/sources"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/lab/workload"
)

type raceCommand struct {
	Pilotfish string `default:"bin/pilotfish" placeholder:"PATH" help:"Path of pilotfish."`
	Envoy     string `default:"bin/envoy/bin/envoy" placeholder:"PATH" help:"Path of Envoy."`
	Rounds    int    `default:"3" help:"Number of rounds, each with other traces."`
	Chart     string `type:"path" placeholder:"FILE" help:"Draw the first columns to this SVG file."`

	Root string `type:"path" default:"." help:"The repository. The hash of its sources is the seed of the traces."`

	hash   string        // of the judged sources
	length time.Duration // of each trace
	jobs   int           // of each trace
}

// The number of reference servers of an entrant, and of virtual cores of each. A joblet sleeps on its core.
const raceServers, raceCores = 8, 4

// raceLoad is the utilisation of the cores without fetches.
const raceLoad = 0.75

// The traces of a race. Traces of the same pattern have the same jobs.
var raced = []struct {
	name    string
	pattern workload.Pattern
	order   string // queue order of the servers, as in ruleserver.Settings
}{
	{"schedules", "schedules", ruleserver.OrderHeader},
	{"sources", "sources", ruleserver.OrderHeader},
	{"steady", "steady", ruleserver.OrderHeader},
	{"schedules, servers that learn lengths", "schedules", ruleserver.OrderExpected},
}

// measurement is one entrant with one trace of a round.
type measurement struct {
	peer
	trace   string
	figures []figure
	err     error
}

// Run measures all entrants with all traces of a round at the same time, each with its own servers,
// whose caches are empty. So other load on the machine affects all of them. Virtual cores sleep, so
// that entrants do not disturb each other: the column "sent late" shows whether they did.
func (c *raceCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	dir, err := os.MkdirTemp("", "race")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if c.hash, err = sources.Hash(c.Root, sources.Judged()...); err != nil {
		return err
	}
	r := &results{setting: fmt.Sprintf("sources that drew the traces: %s; %d servers of %d virtual cores, %.0f %% busy without fetches, %d jobs in %v, %d rounds\nTimes are in seconds.",
		c.hash, raceServers, raceCores, 100*raceLoad, c.jobs, c.length, c.Rounds)}
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
				running.Go(func() { m.figures, m.err = c.one(ctx, dir, &p, jobs, t.order) })
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
	return r.WriteText(console.Out)
}

const threeSidecars, noHeader = "pilotfish, three sidecars", "pilotfish, no Job-Expected"

// entrants returns pilotfish with one sidecar, with three sidecars, and with one that does not send Job-Expected, and
// the peers.
func (c *raceCommand) entrants() []peer {
	all := peers(c.Envoy, []string{"pilotfish, one sidecar=" + c.Pilotfish, threeSidecars + "=" + c.Pilotfish, noHeader + "=" + c.Pilotfish})
	return slices.DeleteFunc(all, func(p peer) bool { return strings.HasPrefix(p.name, meshName) || strings.HasSuffix(p.name, ", log") })
}

// draw draws the jobs of a trace, which all entrants of a round get.
func (c *raceCommand) draw(number, round int) ([]trace.Job, error) {
	t := raced[number]
	s := judge.Setting{Load: raceLoad, Fetch: 1, Workload: workload.Default()} // on average, a fetch takes as long as a job's work
	s.Fleet = sim.Fleet{Upstreams: raceServers, Cores: raceCores}
	w := &s.Workload
	w.Pattern, w.Jobs, w.Duration, w.StartHour, w.Static, w.Submitters = t.pattern, c.jobs, c.length.Seconds(), 9, true, 30
	// A single job or fetch as long as the trace would decide the result.
	w.MaxWork, w.MaxView, w.MaxBytes = 20, 10, 50e6
	jobs, _, err := s.Jobs(judge.Seed(c.hash, "race", t.pattern, round))
	return jobs, err
}

// one measures an entrant with its own servers.
func (c *raceCommand) one(ctx context.Context, dir string, e *peer, jobs []trace.Job, order string) ([]figure, error) {
	servers, err := startServers(raceServers, raceCores, order)
	if err != nil {
		return nil, err
	}
	defer servers.close()
	var targets []string
	var proxies []*proxy
	processes := 1
	if e.name == threeSidecars {
		processes = 3
	}
	for i := range processes {
		s := setting{Dir: filepath.Join(dir, fmt.Sprint(i)), Upstreams: servers.addresses, Withdraw: true, NoHeader: e.name == noHeader}
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return nil, err
		}
		p, address, err := e.start(ctx, s, 64<<10)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		targets, proxies = append(targets, "http://"+address), append(proxies, p)
	}
	figures, err := servers.play(ctx, targets, jobs)
	cpu := 0.0
	for _, p := range proxies {
		used, unread := p.cpu()
		cpu, err = cpu+used, errors.Join(err, unread)
	}
	return append(figures, figure{"CPU ms per job", 1000 * cpu / float64(len(jobs))}), err
}
