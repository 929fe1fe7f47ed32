//go:build cluster

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pair is two sidecars with the same servers, and submitters for each. Reports are polled every
// second.
type pair struct {
	t        *testing.T
	servers  []string // their addresses
	sidecars [2]*cluster
	submit   [2]*submitters
	stops    [2]func()
	ledger   *ledger
}

// newPair starts servers and sidecars. Submitters post 25 jobs a second to each sidecar.
func newPair(t *testing.T, servers int, flags ...string) *pair {
	t.Helper()
	first := newCluster(t, newFeeds(t, 0), flags...)
	second := *first
	p := &pair{t: t, servers: freeAddresses(t, servers), sidecars: [2]*cluster{first, &second}, ledger: newLedger()}
	for _, a := range p.servers {
		first.serve(a)
	}
	for i, sidecar := range p.sidecars {
		sidecar.sideline("retry: {budget: 1}\ndiscovery:\n  static: [" + strings.Join(p.servers, ", ") + "]\n")
		sidecar.eligible(servers, servers)
		p.submit[i] = newSubmitters(t, sidecar.sidecar.jobs, p.ledger, 3)
		p.submit[i].number.Store(int64(i) * 1_000_000)
		p.stops[i] = p.submit[i].pace(40 * time.Millisecond)
		t.Cleanup(p.stops[i])
	}
	p.more(40)
	return p
}

// more waits until this many further jobs have ended at each sidecar.
func (p *pair) more(jobs int64) {
	p.t.Helper()
	for _, s := range p.submit {
		s.more(p.t, jobs)
	}
}

// numbers returns the numbers of the last posted jobs.
func (p *pair) numbers() (last [2]int64) {
	for i, s := range p.submit {
		last[i] = s.number.Load()
	}
	return last
}

// end ends all processes, and checks every job in the ledger.
func (p *pair) end() {
	p.t.Helper()
	p.more(20)
	ended := 0.0
	for i, sidecar := range p.sidecars {
		p.stops[i]()
		ended += sidecar.closed(int(p.submit[i].ended.Load())).sum("pilotfish_jobs_total")
		sidecar.beside.drain()
		p.ledger.readSidecar(jobLines[passedJob](p.t, sidecar.beside.log))
	}
	assert.EqualValues(p.t, len(p.ledger.answers), ended, "every job ended in one outcome")
	first := p.sidecars[0]
	for address, server := range first.servers {
		server.drain()
		p.ledger.readServer(address, jobLines[workedJob](p.t, first.serverLog(address)))
	}
	assert.Empty(p.t, p.ledger.audit())
}

// wentTo counts the jobs of a range of numbers that had an attempt at an upstream, and returns
// the time of the last attempt.
func (l *ledger) wentTo(upstream string, after, until int64) (n int, last time.Time) {
	for number := after + 1; number <= until; number++ {
		session := fmt.Sprintf("job-%d", number)
		for _, j := range l.passed[session] {
			for _, a := range j.Attempts {
				if a.Upstream != upstream {
					continue
				}
				n++
				if sent := l.answers[session].sent; sent.After(last) {
					last = sent
				}
			}
		}
	}
	return n, last
}

// ledgerOf prints the results of all jobs.
func (p *pair) ledgerOf(what string, more ...string) {
	fmt.Printf("== ledger: %s\n%v%s\n", what, p.ledger, strings.Join(more, ""))
}

// wait waits for the end of a server's process, with exit code 0.
func (p *pair) wait(address string) {
	p.t.Helper()
	require.NoError(p.t, p.sidecars[0].servers[address].cmd.Wait(), tail(p.sidecars[0].serverLog(address)))
}
