//go:build cluster

package report

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/loopback"
	"example.org/pilotfish/test/program"
)

// A real Prometheus gives the same report of a page as polling the page does, with the time of its scrape. An upstream
// that can no longer be scraped has no report.
func TestRealPrometheus(t *testing.T) {
	for name, c := range map[string]struct {
		page  string
		names Names
	}{
		"a rule processing server": {goodPage, Default().Names},
		"labels and scales":        {vllmPage, vllmNames()},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var scrapes []time.Time
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				scrapes = append(scrapes, time.Now())
				w.Header().Set("Content-Type", "text/plain; version=0.0.4")
				_, _ = io.WriteString(w, c.page)
			}))
			defer server.Close()
			address := server.Listener.Addr().String()
			prometheus := startPrometheus(t, address)
			a := newAsked(t, nil, []string{address}, func(cfg *Config) { cfg.Prometheus, cfg.Names = prometheus, c.names })
			poll := func(until func() bool, what string) {
				t.Helper()
				require.Eventually(t, func() bool { a.once(t, a.pollPrometheus); return until() }, patience, 100*time.Millisecond, what)
			}
			poll(func() bool { return len(a.reports) > 0 }, "a report")
			want, waits, err := readLoad(c.page, c.names)
			require.NoError(t, err)
			got := a.reports[address][0]
			mu.Lock()
			// Prometheus can shift the time of a scrape by 2 ms, and the server receives it shortly afterwards. The time of the
			// query is later.
			assert.False(t, got.At.After(scrapes[len(scrapes)-1].Add(10*time.Millisecond)), "scrapes at %v, the report is of %v", scrapes, got.At)
			assert.False(t, got.At.Before(scrapes[0].Add(-10*time.Second)), "scrapes at %v, the report is of %v", scrapes, got.At)
			mu.Unlock()
			assert.True(t, math.IsNaN(got.Wait), "nothing to compare with yet")
			got.At, got.Wait = want.At, want.Wait
			assert.Equal(t, want, got)
			assert.Equal(t, waits, a.all[address].before)

			server.Close()
			poll(func() bool {
				return slices.Contains(a.failed[address], "upstream "+address+": metrics: from Prometheus: "+noMetrics)
			}, "the upstream is gone")
			assert.Empty(t, a.reports)
		})
	}
}

// The tests in files with this build tag run a real Prometheus, from Debian's package
// prometheus: make test-prometheus.

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
	program.Spawn(t, filepath.Join(dir, "log"), binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
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
