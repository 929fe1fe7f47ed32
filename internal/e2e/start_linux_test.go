package e2e

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// SIGHUP reloads the configuration. During the start, it does not end the process.
func TestSIGHUPReloads(t *testing.T) {
	t.Parallel()
	config := func(upstream string) string { return "discovery: {static: [" + echoing(t, upstream) + "]}\n" }
	args := options(t, config("a"))
	s := program.Start(t, serving(args...), nil)
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

	require.NoError(t, os.WriteFile(args[slices.Index(args, "--config")+1], []byte(config("b")), 0o600))
	s.Signal(syscall.SIGHUP)
	jobs := fmt.Sprintf("http://%s/v1/jobs", s.Await("serving")["jobs"])
	require.Eventually(t, func() bool {
		return call(t, http.MethodPost, jobs, `{"project_id": 1}`).header.Get("Upstream") == "b"
	}, patience, tick)
	s.Stop()
}
