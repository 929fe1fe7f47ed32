// Package e2e tests the programs as they are shipped: pilotfish as a separate
// process, with real sockets to submitters and upstreams. Build tags select the tests:
//
//	none     one sidecar: signals, restarts, systemd, its metrics;      go test ./internal/e2e
//	         a trace through three sidecars
//	clients  the examples of docs/ in Python, Java, Node, Go and curl   make test-clients
//	cluster  no job is lost while servers are killed, drained or        make test-cluster
//	         paused, with real Consul agents; a ledger of all jobs;
//	         the alerts of incidents
//	mesh     the same through a real Envoy that consults pilotfish      make test-mesh
//	soak     a minute of load and failures leaks no resources           make soak
//
// Files that hold no test but helpers are named harness_*.
package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// pilotfish is the program, which TestMain builds.
var pilotfish string

// tick is how often a condition is looked at. patience is how long something may take that should happen
// at once: tests measure no times, it only ends those that hang.
const (
	tick     = 5 * time.Millisecond
	patience = 3 * time.Minute // longer than the grace time of a shutdown
	idle     = time.Minute     // how long a submitter keeps a connection: pilotfish would close one that was just taken for a job
)

// advances waits until a count has reached a number. The total time is not limited, but the
// count must increase at least once within patience.
func advances(t *testing.T, count func() int64, until int64, stuck string) {
	t.Helper()
	for n := count(); n < until; {
		before := n
		require.Eventually(t, func() bool { n = count(); return n > before }, patience, tick, stuck)
	}
}

func TestMain(m *testing.M) { program.Main(m, &pilotfish) }
