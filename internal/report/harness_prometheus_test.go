//go:build cluster

package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/loopback"
)

// The tests in files with this build tag run a real Prometheus, as Debian's
// package prometheus has it: make test-prometheus.

// startPrometheus runs a server that scrapes the targets every second, and
// returns its URL.
func startPrometheus(t *testing.T, targets ...string) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	require.NoError(t, err, "want Prometheus: apt-get install prometheus")

	var config strings.Builder
	config.WriteString("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: rules\n  static_configs:\n")
	fmt.Fprintf(&config, "  - targets: [%s]\n", strings.Join(targets, ", "))
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config.String()), 0o600))

	address, err := loopback.Reserve()
	require.NoError(t, err)
	var log bytes.Buffer
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()         // tells that it was killed
		if t.Failed() {
			t.Log(log.String())
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.Eventually(t, func() bool {
		resp, err := client.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, patience, 100*time.Millisecond, "Prometheus is ready")
	return "http://" + address
}

// everFailed asks Prometheus whether a scrape of a target has failed: on a busy machine
// it may take longer than the second that it has.
func everFailed(t *testing.T, url, instance string) bool {
	t.Helper()
	response, err := http.PostForm(url+"/api/v1/query", neturl.Values{"query": {fmt.Sprintf("min_over_time(up{instance=%q}[1h])", instance)}})
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return strings.Contains(string(text), `,"0"]`)
}

// running runs a source until the test ends.
func running(t *testing.T, p Source) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// within receives a value, or fails after patience.
func within[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case x := <-from:
		return x
	case <-time.After(patience):
		assert.FailNow(t, "it did not come in time", what)
		panic("unreachable")
	}
}
