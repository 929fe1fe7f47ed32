package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program is the pilotfish under test.
var program string

// tick is how often a condition is looked at; patience is how long something may take that should happen at once. Tests
// measure no times: it only ends those that hang.
const (
	tick     = 5 * time.Millisecond
	patience = 30 * time.Second
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pilotfish")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "pilotfish")
	build := exec.Command("go", "build", fmt.Sprintf("-race=%t", raceDetector), "-o", program, "example.org/pilotfish/cmd/pilotfish")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pilotfish: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
