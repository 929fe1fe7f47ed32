package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// A SIGHUP during the start reloads the configuration. It does not end the process.
func TestSIGHUPDuringTheStart(t *testing.T) {
	t.Parallel()
	s := program.Start(t, serving(options(t, "discovery: {static: ['127.0.0.1:1']}\n")...), nil)
	ignored := regexp.MustCompile(`(?m)^SigIgn:\s*([0-9a-f]+)$`)
	require.Eventually(t, func() bool { // SIGPIPE is ignored at the start of the command
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
		if err != nil {
			return false
		}
		mask, err := strconv.ParseUint(string(ignored.FindSubmatch(status)[1]), 16, 64)
		return err == nil && mask&(1<<(syscall.SIGPIPE-1)) != 0
	}, patience, tick)
	s.Signal(syscall.SIGHUP)
	s.Await("the configuration was reloaded")
	s.Stop()
}
