package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/test/loopback"
	"example.org/pilotfish/test/program"
)

// sidecar is a pilotfish that a test submits jobs to. In a cluster, its process is a separate daemon.
type sidecar struct {
	*program.Sidecar
	t     *testing.T
	jobs  string // host:port
	admin string
}

// options are arguments of pilotfish serve: free ports, a configuration file with a text, and upstreams.
func options(t *testing.T, config string, upstreams ...string) []string {
	t.Helper()
	args := []string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	if config != "" {
		file := filepath.Join(t.TempDir(), "pilotfish.yaml")
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		args = append(args, "--config", file)
	}
	for _, u := range upstreams {
		args = append(args, "--upstream", u)
	}
	return args
}

// start runs pilotfish serve and waits until it serves.
func start(t *testing.T, args ...string) *sidecar {
	t.Helper()
	return launch(t, serving(args...), nil)
}

func serving(args ...string) *exec.Cmd {
	return exec.Command(pilotfish, append([]string{"serve"}, args...)...)
}

// activate runs pilotfish serve with sockets as systemd passes them.
func activate(t *testing.T, sockets []*os.File, names string, args ...string) *sidecar {
	t.Helper()
	return launch(t, activated(sockets, names, args...), nil)
}

func activated(sockets []*os.File, names string, args ...string) *exec.Cmd {
	// The protocol requires the process's own PID, which its parent knows too late.
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" serve "$@"`, pilotfish}, args...)...)
	cmd.ExtraFiles = sockets
	cmd.Env = append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(sockets)), "LISTEN_FDNAMES="+names)
	return cmd
}

// launch passes the log lines of jobs to onJob, if it is not nil.
func launch(t *testing.T, cmd *exec.Cmd, onJob func([]byte)) *sidecar {
	t.Helper()
	s := program.Launch(t, cmd, onJob)
	return &sidecar{Sidecar: s, t: t, jobs: s.Jobs, admin: s.Admin}
}

// reply is a response that was read to its end.
type reply struct {
	status int // 0 if there is no whole response
	header http.Header
	text   string
}

// call sends a request to any server and reads the response. header has names and values.
func call(t *testing.T, method, url, body string, header ...string) reply {
	t.Helper()
	return callBy(t, http.DefaultClient, method, url, body, header...)
}

func callBy(t *testing.T, client *http.Client, method, url, body string, header ...string) (r reply) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if !assert.NoError(t, err) {
		return r
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if !assert.NoError(t, err) {
		return r
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if assert.NoError(t, err) {
		r = reply{response.StatusCode, response.Header, string(text)}
	}
	return r
}

// post posts a job.
func (s *sidecar) post(body string) reply {
	s.t.Helper()
	return call(s.t, http.MethodPost, "http://"+s.jobs+"/v1/jobs", body)
}

// get decodes a response of the admin port.
func (s *sidecar) get(path string, into any) {
	s.t.Helper()
	r := call(s.t, http.MethodGet, "http://"+s.admin+path, "")
	require.Equal(s.t, http.StatusOK, r.status)
	require.NoError(s.t, json.Unmarshal([]byte(r.text), into))
}

// samples is a scrape of the sidecar's metrics.
type samples model.Vector

func (s *sidecar) scrape() (samples, error) {
	res, err := http.Get("http://" + s.admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", res.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		return nil, err
	}
	all, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	return samples(all), err
}

// sum adds the gauges and counters of a name whose labels include these pairs of name and
// value.
func (s samples) sum(name string, pairs ...string) float64 {
	total := 0.0
	for _, m := range s {
		matches := m.Metric[model.MetricNameLabel] == model.LabelValue(name)
		for i := 0; i < len(pairs); i += 2 {
			matches = matches && m.Metric[model.LabelName(pairs[i])] == model.LabelValue(pairs[i+1])
		}
		if matches {
			total += float64(m.Value)
		}
	}
	return total
}

// count returns the number of samples of a name.
func (s samples) count(name string) (n int) {
	for _, m := range s {
		if m.Metric[model.MetricNameLabel] == model.LabelValue(name) {
			n++
		}
	}
	return n
}

// metric is sum of a new scrape, or NaN, which equals nothing, if the scrape fails.
func (s *sidecar) metric(name string, pairs ...string) float64 {
	scraped, err := s.scrape()
	if err != nil || scraped.count(name) == 0 {
		return math.NaN()
	}
	return scraped.sum(name, pairs...)
}

// eventually waits until metric returns a value: many events are counted just after the response that they belong to.
func (s *sidecar) eventually(want float64, name string, pairs ...string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.metric(name, pairs...) == want }, patience, tick, "%s %v is not %v", name, pairs, want)
}

// handling starts an upstream, and returns its host:port.
func handling(t *testing.T, h http.HandlerFunc) (address string) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

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

func accepts(address string) bool {
	c, err := net.Dial("tcp", address)
	return err == nil && c.Close() == nil
}

// until waits until the upstreams are in a state.
func (s *sidecar) until(what string, so func(map[string]pool.State) bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var all struct {
			Upstreams []struct {
				pool.State
				Breaker any `json:"breaker"`
			}
		}
		s.get("/api/upstreams", &all)
		by := map[string]pool.State{}
		for _, u := range all.Upstreams {
			by[u.Address] = u.State
		}
		return so(by)
	}, patience, 10*tick, what)
}
