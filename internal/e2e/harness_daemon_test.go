//go:build cluster || mesh || clients

package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/loopback"
)

// daemon is a process that runs until it is stopped. Its output is
// appended to a file, which survives a kill.
type daemon struct {
	t   *testing.T
	cmd *exec.Cmd
	log string
}

// spawn starts a process that does not outlive the test.
func spawn(t *testing.T, log, binary string, args ...string) *daemon {
	t.Helper()
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close() // the process has its own descriptor
	d := &daemon{t: t, cmd: exec.Command(binary, args...), log: log}
	d.cmd.Stdout, d.cmd.Stderr = file, file
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, d.cmd.Start())
	t.Cleanup(d.kill)
	return d
}

func (d *daemon) signal(s syscall.Signal) {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Signal(s))
}

// kill kills the process, if it has not ended.
func (d *daemon) kill() {
	if d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Kill() // fails if it is just ending
		_ = d.cmd.Wait()         // it always fails after a kill
	}
}

// drain sends SIGTERM to the process and expects exit code 0.
func (d *daemon) drain() {
	d.t.Helper()
	d.signal(syscall.SIGTERM)
	stuck := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	defer stuck.Stop()
	require.NoError(d.t, d.cmd.Wait(), "see the end of its log:\n%s", tail(d.log))
}

// jobLines decodes the lines of ended jobs in a log.
func jobLines[L any](t *testing.T, log string) []L {
	t.Helper()
	return logLines[L](t, log, `job"`)
}

// logLines decodes the lines of a log whose message starts with message.
func logLines[L any](t *testing.T, log, message string) (lines []L) {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if bytes.Contains(scanner.Bytes(), []byte(`"msg":"`+message)) {
			var l L
			require.NoError(t, json.Unmarshal(scanner.Bytes(), &l), "%s: %s", log, scanner.Text())
			lines = append(lines, l)
		}
	}
	require.NoError(t, scanner.Err())
	return lines
}

// tail returns the lines of a log that are not JSON, such as a data race, and its last lines,
// for a person to read.
func tail(path string) string {
	text, err := os.ReadFile(path)
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

// tool returns the path of a program that make builds into bin.
func tool(t *testing.T, name, variable, build string) string {
	t.Helper()
	path, err := filepath.Abs(cmp.Or(os.Getenv(variable), filepath.Join("..", "..", "bin", name)))
	require.NoError(t, err)
	_, err = os.Stat(path)
	require.NoError(t, err, "build it: %s", build)
	return path
}

// ruleserver builds the reference server once, and returns its path.
var ruleserver = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "ruleserver")
	out, err := exec.Command("go", "build", fmt.Sprintf("-race=%t", raceDetector()), "-o", path, "example.org/pilotfish/cmd/ruleserver").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building ruleserver: %w\n%s", err, out)
	}
	return path, err
})

// freeAddresses returns addresses for servers that will start soon.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	var free []string
	for range n {
		address, err := loopback.Reserve()
		require.NoError(t, err)
		free = append(free, address)
	}
	return free
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	_, err = strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	return port
}
