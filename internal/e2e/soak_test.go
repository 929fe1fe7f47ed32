//go:build soak

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

const (
	soakRate   = 200 // jobs a second
	faultEvery = 2 * time.Second
	faultFor   = 1500 * time.Millisecond
)

// For a minute, or for the duration SOAK, 200 jobs a second are sent through one sidecar to
// four upstreams. Every two seconds another upstream has a fault. Each job obeys the rules of
// soakJob.check, few are lost, and afterwards the sidecar holds as many resources as before.
func TestSoak(t *testing.T) {
	length := time.Minute
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK")
	}
	rng := rand.New(rand.NewPCG(20251120, 1))
	b := &soakBook{}
	var upstreams []*fakeupstream.Upstream
	var addresses []string
	for n := range 4 { // each at its own address: no other connection gets its port while it is closed
		u := fakeupstream.New(t, fakeupstream.Options{Handler: b, Listen: fmt.Sprintf("127.0.0.%d:0", 11+n)})
		upstreams, addresses = append(upstreams, u), append(addresses, u.Address())
	}
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	text := "discovery:\n  static: [" + strings.Join(addresses, ", ") + "]\nreports: {interval: 1s}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	s := launch(t, exec.Command(program, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"))
	before := s.held(t)

	var jobs sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: idle, DisableCompression: true}}
	began := time.Now()
	nextFault, faults := began.Add(faultEvery), 0
	for n := 0; time.Since(began) < length; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / soakRate)))
		if time.Now().After(nextFault) {
			nextFault = nextFault.Add(faultEvery)
			misfortune(t, upstreams[rng.IntN(len(upstreams))], faults)
			faults++
		}
		j := b.submit(rng)
		jobs.Go(func() { j.post(client, "http://"+s.jobs+"/v1/jobs") })
	}
	jobs.Wait()
	client.CloseIdleConnections()
	for _, u := range upstreams { // no job is open: this closes the idle connections
		u.Kill()
	}
	assert.Eventually(t, func() bool {
		now := s.held(t)
		return now.goroutines <= before.goroutines+10 && now.descriptors <= before.descriptors+10 && now.jobs == 0 &&
			now.heap <= before.heap+64<<20
	}, 2*time.Minute, time.Second, "something is left of the jobs: before %+v, now %+v", before, s.held(t))
	last, err := s.scrape()
	require.NoError(t, err)
	assert.Zero(t, last.sum("pilotfish_bound_used", "bound", "body_bytes"))
	s.stop()
	lost, rescued := b.audit(t)
	t.Logf("%d jobs, %d lost, %d answered after a failed attempt", len(b.jobs), lost, rescued)
	assert.Positive(t, rescued)
	assert.LessOrEqual(t, lost, len(b.jobs)/50, "jobs lost")
}

// misfortune gives an upstream one of the faults for a time.
func misfortune(t *testing.T, u *fakeupstream.Upstream, n int) {
	const beforeHeaders, amid = fakeupstream.BeforeHeaders, 10
	faults := []fakeupstream.Fault{
		{Cut: fakeupstream.CutRST, CutAfter: beforeHeaders}, {Cut: fakeupstream.CutRST, CutAfter: amid}, {Cut: fakeupstream.CutFIN, CutAfter: amid},
	}
	switch kind := n % 6; {
	case kind < 3:
		u.SetFault(faults[kind])
	case kind == 3:
		assert.NoError(t, u.Refuse(true))
	case kind == 4:
		u.Kill()
	default:
		u.SetReportFault(fakeupstream.Fault{Body: `{"projects":[{"id":` + strings.Repeat("[", 10_000)})
	}
	time.AfterFunc(faultFor, func() {
		u.SetFault(fakeupstream.Fault{})
		u.SetReportFault(fakeupstream.Fault{})
		assert.NoError(t, u.Refuse(false))
	})
}

// rest is the resources that a sidecar without jobs holds.
type rest struct{ goroutines, descriptors, jobs, heap float64 }

func (s *sidecar) held(t *testing.T) rest {
	t.Helper()
	scraped, err := s.scrape()
	require.NoError(t, err)
	jobs := scraped.sum("pilotfish_upstream_in_flight") + scraped.sum("pilotfish_queue_jobs")
	return rest{scraped.sum("go_goroutines"), scraped.sum("process_open_fds"), jobs, scraped.sum("go_memstats_heap_inuse_bytes")}
}
