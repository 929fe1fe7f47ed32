// Package e2e tests the programs as they are shipped: pilotfish as a separate
// process, with real sockets to submitters and upstreams. Build tags select the tests:
//
//	none     one sidecar: signals, restarts, systemd, its metrics;      go test ./internal/e2e
//	         a trace through three sidecars
//	clients  responses and retries of curl, Python and node             make test-clients
//	cluster  no job is lost while servers are killed, drained, paused   make test-cluster
//	         or faulty, with real Consul agents and Toxiproxy;
//	         a ledger of all jobs
//	mesh     the same through a real Envoy that consults pilotfish      make test-mesh
//	soak     two minutes of load and failures leak no resources         make soak
//
// Files that hold no test but helpers are named harness_*.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is the pilotfish to test.
var program string

// tick is how often a condition is looked at. patience is how long something may take that should happen
// at once: tests measure no times, it only ends those that hang.
const (
	tick     = 5 * time.Millisecond
	patience = time.Minute
	idle     = time.Minute // how long a submitter keeps a connection: pilotfish would close one that was just taken for a job
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

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pilotfish")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "pilotfish")
	build := exec.Command("go", "build", fmt.Sprintf("-race=%t", raceDetector()), "-o", program, "example.org/pilotfish/cmd/pilotfish")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pilotfish: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// raceDetector reports whether the tests run with the race detector; then the programs do, too.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
