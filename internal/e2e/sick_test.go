//go:build cluster

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClusterSickUpstream: one of four servers of two sidecars develops a fault. Each job is
// accounted for. Once a sidecar has detected the fault, it sends few jobs there; if the server
// only claims a fault, not more than to others.
func TestClusterSickUpstream(t *testing.T) {
	const suspect, breaker, implausible, silent = "pilotfish_upstream_suspect", "pilotfish_breaker_state", "pilotfish_upstream_implausible", "pilotfish_report_failures_total"
	for _, c := range []struct {
		name  string
		mode  string // "" stops the process
		sign  string // the metric that shows it, from value on
		value float64
		share float64 // of the later jobs that may be sent there
	}{
		{"hung", "", suspect, 1, 0.02},
		{"fails fast", "fail", breaker, 2, 0.1},
		{"lies about its cores", "lie-cores", implausible, 1, 0.67},
		{"silent", "silent", silent, 2, 0.67},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// With three servers, a second one that is slow because of this machine would
			// prevent any suspicion.
			p := newPair(t, 4, "--cost=fetch=10ms,output=10ms", "--faults")
			sick := p.servers[0]
			before, illAt := p.numbers(), time.Now()
			ill(t, p.sidecars[0].servers[sick], sick, c.mode)
			var known [2]int64 // the number of the last job before that
			var knownAt [2]time.Time
			for i, sidecar := range p.sidecars {
				require.Eventually(t, func() bool { return sidecar.sidecar.metric(c.sign, "upstream", sick) >= c.value }, patience, tick,
					"sidecar %d does not know", i)
				known[i], knownAt[i] = p.submit[i].number.Load(), time.Now()
			}
			p.more(150)
			posted := p.numbers()
			well(t, p.sidecars[0].servers[sick], sick, c.mode)
			if c.sign == suspect {
				for _, sidecar := range p.sidecars {
					require.Eventually(t, func() bool { return sidecar.sidecar.metric(suspect, "upstream", sick) == 0 }, patience, tick)
				}
			}
			p.end()
			l := p.ledger
			assert.Equal(t, len(l.answers), l.count("right")+l.attempts(sick, "failed"), "%v", l)
			var story []string
			for i, sidecar := range p.sidecars {
				if c.sign == suspect {
					causes := suspicions(t, sidecar.beside.log, sick)
					require.NotEmpty(t, causes)
					assert.Regexp(t, "^(2 reports in a row failed|none of its )", causes[0], "sidecar %d", i)
				}
				early, _ := l.wentTo(sick, before[i], known[i])
				late, last := l.wentTo(sick, known[i], posted[i])
				if late == 0 {
					_, last = l.wentTo(sick, before[i], known[i])
				}
				story = append(story, fmt.Sprintf("sidecar %d knew after %.1f s and %d jobs there; %d of %d later jobs went there, the last %.1f s after it fell ill\n",
					i, knownAt[i].Sub(illAt).Seconds(), early, late, posted[i]-known[i], last.Sub(illAt).Seconds()))
				assert.LessOrEqual(t, float64(late), c.share*float64(posted[i]-known[i]), "sidecar %d\n%v", i, l)
			}
			p.ledgerOf(c.name, story...)
		})
	}
}

// TestClusterRollingRestart: all servers of two sidecars drain and restart, one after another.
// No job is lost, and each server gets jobs again.
func TestClusterRollingRestart(t *testing.T) {
	t.Parallel()
	p := newPair(t, 3, "--cost=fetch=10ms,output=30ms")
	first := p.sidecars[0]
	for _, address := range p.servers {
		first.servers[address].signal(syscall.SIGTERM)
		p.wait(address)
		p.more(40)
		first.serve(address)
		back := time.Now()
		for _, sidecar := range p.sidecars {
			sidecar.eligible(len(p.servers), len(p.servers))
		}
		require.Eventually(t, func() bool { return p.ledger.served(address, back) }, patience, tick, "%s is not used again", address)
	}
	p.end()
	assert.Equal(t, len(p.ledger.answers), p.ledger.count("right"), "no job is lost: %v", p.ledger)
	p.ledgerOf("rolling restart")
}

// TestClusterFlashCrowd: 300 jobs of one project arrive at once at each of two sidecars, while
// other jobs continue. All get correct responses, and from more than one server.
func TestClusterFlashCrowd(t *testing.T) {
	t.Parallel()
	const crowd, project = 300, 7
	p := newPair(t, 3, "--cost=fetch=50ms,output=20ms", "--cores=4")
	var all sync.WaitGroup
	var mu sync.Mutex
	served := map[string]int{} // of the crowd, by server
	for _, s := range p.submit {
		for range crowd {
			all.Go(func() {
				session, response, a := s.post(s.clients[0], s.number.Add(1), project, "") // finish closes it
				a = s.finish(session, response, project, a)
				mu.Lock()
				defer mu.Unlock()
				served[a.upstream]++
			})
		}
	}
	all.Wait()
	p.more(40)
	p.end()
	assert.Equal(t, len(p.ledger.answers), p.ledger.count("right"), "no job is lost: %v", p.ledger)
	assert.Greater(t, len(served), 1, "%v", served)
	p.ledgerOf("flash crowd", fmt.Sprintf("the crowd, by server: %v\n", served))
}

// suspicions returns the reasons in a sidecar's log for suspecting an upstream.
func suspicions(t *testing.T, log, upstream string) (causes []string) {
	t.Helper()
	for _, l := range logLines[struct{ Upstream, Cause string }](t, log, "the upstream is suspect: ") {
		if l.Upstream == upstream {
			causes = append(causes, l.Cause)
		}
	}
	return causes
}

// ill gives a server a fault, or stops it.
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

// well removes the fault.
func well(t *testing.T, d *daemon, address, mode string) {
	t.Helper()
	if mode == "" {
		d.signal(syscall.SIGCONT)
		return
	}
	ill(t, d, address, "none")
}
