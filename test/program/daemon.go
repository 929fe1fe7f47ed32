package program

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a process may take to start or to end. It only ends tests that hang.
const patience = 3 * time.Minute // longer than the grace time of a shutdown

// Daemon is a process that runs until it is stopped. Its output is
// appended to a file, which survives a kill.
type Daemon struct {
	*exec.Cmd
	Log string

	t testing.TB
}

// Spawn starts a process that does not outlive the test. If the test fails, the end of the log is printed.
func Spawn(t testing.TB, log, binary string, args ...string) *Daemon {
	t.Helper()
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close() // the process has its own descriptor
	d := &Daemon{Cmd: exec.Command(binary, args...), Log: log, t: t}
	d.Stdout, d.Stderr = file, file
	d.SysProcAttr = endWithParent()
	require.NoError(t, d.Start())
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("output of %s: %s", binary, Tail(log))
		}
	})
	return d
}

// Signal sends a signal to the process.
func (d *Daemon) Signal(s os.Signal) {
	d.t.Helper()
	require.NoError(d.t, d.Process.Signal(s))
}

// Kill kills the process, if it has not ended.
func (d *Daemon) Kill() {
	if d.ProcessState == nil {
		_ = d.Process.Kill() // fails if it is just ending
		_ = d.Wait()         // it always fails after a kill
	}
}

// Drain sends SIGTERM to the process and expects exit code 0.
func (d *Daemon) Drain() {
	d.t.Helper()
	d.Signal(syscall.SIGTERM)
	stuck := time.AfterFunc(patience, func() { _ = d.Process.Kill() })
	defer stuck.Stop()
	require.NoError(d.t, d.Wait(), "see the end of its log:\n%s", Tail(d.Log))
}

// Tail returns the lines of a log that are not JSON, such as a data race, and its last lines,
// for a person to read.
func Tail(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	var odd strings.Builder
	for l := range strings.Lines(string(text)) {
		if !strings.HasPrefix(l, "{") && odd.Len() < 20_000 {
			odd.WriteString(l)
		}
	}
	return odd.String() + string(text[max(0, len(text)-2000):])
}
