//go:build cluster

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// summary omits the series of healthy upstreams, which the alerts do not need.
const summary = "metrics: {upstreams: summary}\n"

// TestClusterAlerts: in each incident its alerts fire, none fires before it, and none remains
// after it.
func TestClusterAlerts(t *testing.T) {
	for _, c := range []struct {
		name   string
		alerts string // separated by spaces
		config string
		begin  func(*incident)
		end    func(*incident)
		flags  []string // of the servers
	}{
		{
			"one hangs", "PilotfishUpstreamSilent", summary,
			func(x *incident) {
				x.c.ill(x.servers[0], "")
				x.until(is(1), "pilotfish_upstream_suspect", "upstream", x.servers[0])
			},
			func(x *incident) { x.c.well(x.servers[0], "") },
			nil,
		},
		{
			"one is killed", "PilotfishUpstreamDown", summary,
			func(x *incident) {
				x.c.kill(x.servers[0])
				x.until(is(1), "pilotfish_upstream_down", "upstream", x.servers[0])
			},
			func(x *incident) { x.c.serve(x.servers[0]) },
			nil,
		},
		{
			"one answers 500", "PilotfishBreakerOpen", "",
			func(x *incident) { x.c.ill(x.servers[0], "fail") },
			func(x *incident) { x.c.well(x.servers[0], "fail") },
			nil,
		},
		{
			"all answer 500", "PilotfishPanicMode PilotfishLosesJobs", "",
			func(x *incident) {
				for _, s := range x.servers {
					x.c.ill(s, "fail")
				}
				x.until(is(1), "pilotfish_panic_mode")
			},
			func(x *incident) {
				for _, s := range x.servers {
					x.c.well(s, "fail")
				}
			},
			nil,
		},
		{
			// So much slower that it is also five times as slow as servers on a busy machine.
			"one is twenty times slower", "PilotfishUpstreamSlow", summary,
			func(x *incident) {
				x.again(x.servers[0], "--cost=fetch=10ms,output=400ms")
				x.until(is(1), "pilotfish_upstream_slow", "upstream", x.servers[0])
			},
			func(x *incident) { x.again(x.servers[0]) },
			nil,
		},
		{
			"the catalogue is gone", "PilotfishDiscoveryStale", "consul",
			func(x *incident) { x.catalogue.Store(false) },
			func(x *incident) { x.catalogue.Store(true); x.until(below(5), "pilotfish_discovery_age_seconds") },
			nil,
		},
		{
			"the disk is full", "PilotfishLogIncomplete", "",
			func(x *incident) {
				x.restart("/dev/full")
				x.stop = x.submit.pace(5 * time.Millisecond)
				x.until(above(0), "pilotfish_log_lines_lost_total") // up to a megabyte of lines can wait
			},
			func(x *incident) { x.stop(); x.restart(x.log) },
			nil,
		},
		{
			// 125 jobs of high priority per second, with capacity for 75.
			"a flood", "PilotfishShedsHigh", "queue: {jobs: 20, wait: 1s}\noverload: {policy: threshold, stalled: 4}\n",
			func(x *incident) { x.stop = x.submit.pace(5 * time.Millisecond) },
			func(x *incident) { x.stop() },
			[]string{"--cost=fetch=10ms,output=80ms"},
		},
		{
			"killed for its memory", "PilotfishDown PilotfishRestarts", "",
			func(x *incident) {
				for range 2 {
					x.c.beside.Kill() // like the kernel
					x.record(8)
					x.restart(x.log)
					x.record(2)
				}
			},
			func(*incident) {},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newIncident(t, c.config, c.flags...)
			x.calm()
			x.record(10)
			from := x.steps
			c.begin(x)
			x.record(30)
			to := x.steps
			c.end(x)
			x.calm()
			x.judge(from, to, strings.Fields(c.alerts)...)
		})
	}
}

// incident is a sidecar with three servers and a load, whose metrics are scraped.
type incident struct {
	*replay
	servers   []string
	submit    *submitters
	stop      func() // of the flood
	log       string
	catalogue atomic.Bool // the catalogue responds
}

func newIncident(t *testing.T, config string, flags ...string) *incident {
	t.Helper()
	c := newCluster(t, newFeeds(t, 0), append([]string{"--cost=fetch=10ms,output=20ms", "--cores=2", "--faults"}, flags...)...)
	x := &incident{replay: newReplay(t, c), servers: freeAddresses(t, 3)}
	for _, a := range x.servers {
		c.serve(a)
	}
	x.catalogue.Store(true)
	source := "static: [" + strings.Join(x.servers, ", ") + "]"
	if config == "consul" {
		agent := httptest.NewServer(x)
		t.Cleanup(agent.Close)
		config, source = "", "consul: {address: '"+agent.URL+"', service: rules}"
	}
	c.sideline(config + "breaker: {open: 500ms}\ndiscovery: {" + source + "}\n")
	x.log = c.beside.Log
	c.eligible(3, 3)
	x.submit = newSubmitters(t, c.sidecar.jobs, newLedger(), 3)
	x.submit.steady = true
	t.Cleanup(x.submit.pace(20 * time.Millisecond))
	x.submit.more(t, 300) // enough jobs to learn the projects' durations
	return x
}

// ServeHTTP serves the catalogue of upstreams.
func (x *incident) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !x.catalogue.Load() {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Query().Get("index") != "" {
		time.Sleep(scraped) // no change
	}
	var entries []string
	for _, a := range x.servers {
		host, port, _ := strings.Cut(a, ":")
		entries = append(entries, fmt.Sprintf(`{"Node": {"Address": %q}, "Service": {"Address": %q, "Port": %s}}`, host, host, port))
	}
	w.Header().Set("X-Consul-Index", "1")
	w.Header().Set("X-Consul-LastContact", "0")
	w.Header().Set("X-Consul-KnownLeader", "true")
	_, _ = io.WriteString(w, "["+strings.Join(entries, ",")+"]")
}

// again restarts a server with more flags, and lets it cache all projects: it is compared by jobs whose data is cached, and
// a slow server with an empty cache gets few of them.
func (x *incident) again(address string, flags ...string) {
	x.c.t.Helper()
	before := x.c.flags
	x.c.kill(address)
	x.c.flags = append(slices.Clone(before), flags...)
	x.c.serve(address)
	x.c.flags = before
	var jobs sync.WaitGroup
	for project := 1; project <= steadyProjects; project++ {
		jobs.Go(func() {
			r := call(x.c.t, http.MethodPost, "http://"+address+"/v1/jobs", job(fmt.Sprint("warm-", project), project, "low", ""))
			assert.Equal(x.c.t, http.StatusOK, r.status, r.text)
		})
	}
	jobs.Wait()
}

// restart restarts the sidecar with another log file.
func (x *incident) restart(log string) {
	x.c.t.Helper()
	x.c.beside.Kill()
	x.c.beside = program.Spawn(x.c.t, log, pilotfish, "serve", "--config", x.c.config)
	require.Eventually(x.c.t, func() bool { _, err := x.c.sidecar.scrape(); return err == nil }, patience, tick)
}

func is(want float64) func(float64) bool { return func(v float64) bool { return v == want } }
func above(least float64) func(float64) bool {
	return func(v float64) bool { return v > least }
}
func below(most float64) func(float64) bool { return func(v float64) bool { return v < most } }
