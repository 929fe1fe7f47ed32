//go:build cluster

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClusterSickUpstream: one of three servers falls ill before two sidecars. Each
// job is accounted for, and once a sidecar knows of the illness, few of its jobs go
// there, or no more than to another where the illness is a lie.
func TestClusterSickUpstream(t *testing.T) {
	const suspect, breaker, implausible, silent = "pilotfish_upstream_suspect", "pilotfish_breaker_state", "pilotfish_upstream_implausible", "pilotfish_report_failures_total"
	for _, c := range []struct {
		name  string
		mode  string // "" stops the process
		sign  string // a metric that tells of it, from that value on
		value float64
		share float64 // of the later jobs that may go there
	}{
		{"stopped", "", suspect, 1, 0.02},
		{"hung", "hang", suspect, 1, 0.02},
		{"fails fast", "fail", breaker, 2, 0.1},
		{"lies about its cores", "lie-cores", implausible, 1, 0.67},
		{"silent", "silent", silent, 2, 0.67},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := newCluster(t, newFeeds(t, 0), "--cost=fetch=10ms,output=10ms", "--faults")
			servers := freeAddresses(t, 3)
			for _, a := range servers {
				first.serve(a)
			}
			second := *first
			l := newLedger()
			var all []*submitters
			var stops []func()
			pair := []*cluster{first, &second}
			for i, sidecar := range pair {
				sidecar.sideline("retry: {budget: 1}\ndiscovery:\n  static: [" + strings.Join(servers, ", ") + "]\n")
				sidecar.eligible(3, 3)
				s := newSubmitters(t, sidecar.sidecar.jobs, l, 3)
				s.number.Store(int64(i) * 1_000_000)
				stop := s.pace(40 * time.Millisecond)
				defer stop()
				s.more(t, 40)
				all, stops = append(all, s), append(stops, stop)
			}

			sick := servers[0]
			ill(t, first.servers[sick], sick, c.mode)
			var known []int64 // the number of the last job before
			for i, sidecar := range pair {
				require.Eventually(t, func() bool { return sidecar.sidecar.metric(c.sign, "upstream", sick) >= c.value }, patience, tick,
					"sidecar %d does not know", i)
				known = append(known, all[i].number.Load())
			}
			for _, s := range all {
				s.more(t, 150)
			}
			var posted []int64
			for _, s := range all {
				posted = append(posted, s.number.Load())
			}
			well(t, first.servers[sick], sick, c.mode)
			if c.sign == suspect {
				for _, sidecar := range pair {
					require.Eventually(t, func() bool { return sidecar.sidecar.metric(suspect, "upstream", sick) == 0 }, patience, tick)
				}
			}
			ended := 0.0
			for i, s := range all {
				s.more(t, 20)
				stops[i]()
				assert.Eventually(t, func() bool { return pair[i].sidecar.metric("pilotfish_upstream_in_flight") == 0 }, patience, tick)
				ended += pair[i].sidecar.metric("pilotfish_jobs_total")
				pair[i].beside.drain()
				l.readSidecar(jobLines[passedJob](t, pair[i].beside.log))
			}
			assert.EqualValues(t, len(l.answers), ended, "every job ended in one outcome")
			for address, server := range first.servers {
				server.drain()
				l.readServer(address, jobLines[workedJob](t, first.serverLog(address)))
			}
			assert.Empty(t, l.audit())
			assert.Equal(t, len(l.answers), l.count("right")+l.attempts(sick, "failed"), "%v", l)
			for i := range pair {
				went := l.wentTo(sick, known[i], posted[i])
				t.Logf("sidecar %d: %d of %d jobs went there later", i, went, posted[i]-known[i])
				assert.LessOrEqual(t, float64(went), c.share*float64(posted[i]-known[i]), "sidecar %d\n%v", i, l)
			}
		})
	}
}

// wentTo counts the jobs of a range of numbers that had an attempt at an upstream.
func (l *ledger) wentTo(upstream string, after, until int64) (n int) {
	for number := after + 1; number <= until; number++ {
		for _, j := range l.passed[fmt.Sprintf("job-%d", number)] {
			for _, a := range j.Attempts {
				if a.Upstream == upstream {
					n++
				}
			}
		}
	}
	return n
}

// ill makes a server ill: it stops, or it has a fault.
func ill(t *testing.T, d *daemon, address, mode string) {
	t.Helper()
	if mode == "" {
		d.signal(syscall.SIGSTOP)
		return
	}
	r, err := http.NewRequest(http.MethodPut, "http://"+address+"/v1/fault", strings.NewReader(mode))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Less(t, response.StatusCode, 300, "%s", text)
}

// well ends that.
func well(t *testing.T, d *daemon, address, mode string) {
	t.Helper()
	if mode == "" {
		d.signal(syscall.SIGCONT)
		return
	}
	ill(t, d, address, "none")
}
