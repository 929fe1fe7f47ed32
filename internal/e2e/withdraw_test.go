package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	reference "example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
)

// unreliable is a reference server that sometimes loses a request to withdraw a job, or its response.
type unreliable struct {
	http.Handler
	mu   sync.Mutex
	rng  *rand.Rand
	sick atomic.Int64 // jobs that get a 500 next
}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodDelete:
		u.mu.Lock()
		fault := u.rng.IntN(4)
		u.mu.Unlock()
		if fault == 0 { // the request is lost
			panic(http.ErrAbortHandler)
		}
		if fault == 1 { // it arrives late
			time.Sleep(50 * time.Millisecond)
		}
		if fault == 2 { // the response is lost
			u.Handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
	case http.MethodPost:
		if u.sick.Add(-1) >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
	}
	u.Handler.ServeHTTP(w, r)
}

// Two sidecars send jobs to random upstreams, and upstreams withdraw waiting jobs for idle ones. Requests and responses are
// lost or late, an upstream is drained, another refuses jobs because it shuts down, a breaker opens, and a sidecar shuts
// down. Each job with a result starts exactly once, and no job with an error starts.
func TestWithdrawnJobsRunOnce(t *testing.T) {
	t.Parallel()
	const jobs, sick, seed = 400, 30, 1
	var mu sync.Mutex
	started := map[string]int{} // by session, at all upstreams
	ended := func(r reference.Record) {
		mu.Lock()
		defer mu.Unlock()
		if r.Facts.Started {
			started[r.Session]++
		}
	}
	var servers []*reference.Server
	var upstreams []*unreliable
	var webs []*httptest.Server
	const config = `
job: {withdraw_path: "/v1/jobs/{id}"}
selection: {policy: random}
reports: {interval: 200ms}
retry: {budget: 1}
admin_write: true
`
	var addresses []string
	for i := range 4 {
		settings := reference.Defaults()
		settings.Cores, settings.TrustCost = 2, true
		server, err := reference.New(reference.Config{Settings: settings, Feeds: example.AnyFeeds(), OnJob: ended})
		require.NoError(t, err)
		t.Cleanup(server.Close)
		u := &unreliable{Handler: server.Handler(), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		web := httptest.NewServer(u)
		t.Cleanup(web.Close)
		webs, servers, upstreams = append(webs, web), append(servers, server), append(upstreams, u)
		addresses = append(addresses, web.Listener.Addr().String())
	}
	var lines sync.Map // by session, the lines that the sidecars log for jobs
	args := options(t, config, addresses...)
	launched := func() *sidecar {
		return launch(t, serving(args...), func(text []byte) {
			var l struct{ Session string }
			if json.Unmarshal(text, &l) == nil {
				lines.Store(l.Session, string(text))
			}
		})
	}
	sidecars := []*sidecar{launched(), launched()}

	rng := rand.New(rand.NewPCG(seed, 100))
	statuses := make([]int, jobs)
	var submitted sync.WaitGroup
	for n := range jobs {
		to, cost, pause := sidecars[n%2], rng.ExpFloat64()*80, rng.ExpFloat64()*16
		if n >= jobs*3/4 {
			to = sidecars[0]
		}
		submitted.Go(func() {
			body := fmt.Sprintf(`{"session_id":"%d","project_id":"%d","operators":[{"name":"%d"}]}`, n, n%7, n)
			cost := fmt.Sprintf("fetch=20ms,operators=%dms", int(cost)+1)
			statuses[n] = call(t, http.MethodPost, "http://"+to.jobs+"/v1/jobs", body, "X-Cost", cost).status
		})
		switch n {
		case jobs / 4:
			require.Equal(t, 200, call(t, http.MethodPost, "http://"+sidecars[0].admin+"/api/upstreams/"+addresses[0]+"/drain", "").status)
		case jobs / 2:
			upstreams[1].sick.Store(sick)
		case jobs * 5 / 8:
			servers[2].Drain()
		case jobs * 3 / 4:
			sidecars[1].Signal(syscall.SIGTERM)
		}
		time.Sleep(time.Duration(pause * float64(time.Millisecond)))
	}
	submitted.Wait()
	assert.Zero(t, sidecars[1].Exit())
	accepted := sidecars[0].metric("pilotfish_withdrawals_total", "outcome", "accepted")
	refused := sidecars[0].metric("pilotfish_withdrawals_total", "outcome", "refused")
	assert.Positive(t, accepted)
	assert.Positive(t, refused)
	assert.Positive(t, sidecars[0].metric("pilotfish_upstream_attempts_total", "outcome", "moved"))
	assert.NotEmpty(t, append(sidecars[0].Logged("breaker opened"), sidecars[1].Logged("breaker opened")...))
	sidecars[0].Stop()
	for _, web := range webs { // a job is counted after its response
		web.Close()
	}
	results := map[int]int{}
	for n, status := range statuses {
		results[status]++
		line, _ := lines.Load(fmt.Sprint(n))
		if strings.Contains(fmt.Sprint(line), "moved to another upstream") { // from a suspect: its polls took too long on this machine
			continue
		}
		want := map[bool]int{true: 1}[status == http.StatusOK] // any other response says that the job did not start
		assert.Equal(t, want, started[fmt.Sprint(n)], "job %d: status %d: %v", n, status, line)
	}
	assert.Greater(t, results[http.StatusOK], jobs/2)
	t.Logf("%v withdrawn, %v refused; jobs by status: %v", accepted, refused, results)
}
