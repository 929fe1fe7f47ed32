//go:build soak

package e2e

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	s := start(t, options(t, "reports: {interval: 1s}\n", addresses...)...)
	before := s.held(t)

	var jobs sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: idle, DisableCompression: true}}
	began := time.Now()
	nextFault, faults := began.Add(faultEvery), 0
	var faulty atomic.Bool // on a busy machine a fault can end late: two at a time would meet both attempts of a job
	for n := 0; time.Since(began) < length; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / soakRate)))
		if time.Now().After(nextFault) && !faulty.Load() {
			nextFault = nextFault.Add(faultEvery)
			faulty.Store(true)
			misfortune(t, upstreams[rng.IntN(len(upstreams))], faults, &faulty)
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
			now.bodies == 0 && now.heap <= before.heap+64<<20
	}, 2*time.Minute, time.Second, "something is left of the jobs: before %+v, now %+v", before, s.held(t))
	s.Stop()
	lost, rescued := b.audit(t)
	t.Logf("%d jobs, %d lost, %d answered after a failed attempt", len(b.jobs), lost, rescued)
	assert.Positive(t, rescued)
	assert.LessOrEqual(t, lost, len(b.jobs)/50, "jobs lost")
}

// misfortune gives an upstream one of the faults for a time; then it sets faulty to false.
func misfortune(t *testing.T, u *fakeupstream.Upstream, n int, faulty *atomic.Bool) {
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
		faulty.Store(false)
	})
}

// rest is the resources that a sidecar without jobs holds.
type rest struct{ goroutines, descriptors, jobs, bodies, heap float64 }

func (s *sidecar) held(t *testing.T) rest {
	t.Helper()
	scraped, err := s.scrape()
	require.NoError(t, err)
	jobs := scraped.sum("pilotfish_upstream_in_flight") + scraped.sum("pilotfish_queue_jobs")
	return rest{
		scraped.sum("go_goroutines"), scraped.sum("process_open_fds"), jobs,
		scraped.sum("pilotfish_bound_used", "bound", "body_bytes"), scraped.sum("go_memstats_heap_inuse_bytes"),
	}
}

// soakBook records every job of a soak: its end, and its attempts at upstreams.
type soakBook struct {
	mu   sync.Mutex
	jobs []*soakJob
}

// soakJob is one job. Its response names the job and the attempt.
type soakJob struct {
	number, size int           // size is that of the response
	leaves       time.Duration // the submitter disconnects after this time; 0 means never

	mu     sync.Mutex
	visits []*soakVisit

	status int
	own    bool // the response is pilotfish's
	cut    bool
	text   string
	left   bool // before the end of the response
}

// soakVisit is an attempt as its upstream sees it.
type soakVisit struct{ read, damaged, wrote, whole bool }

const soakHeader = "Soak-Job"

// submit adds the next job.
func (b *soakBook) submit(rng *rand.Rand) *soakJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := &soakJob{number: len(b.jobs), size: 1 << rng.IntN(18)}
	if rng.IntN(10) == 0 {
		j.leaves = time.Duration(1+rng.IntN(20)) * time.Millisecond
	}
	b.jobs = append(b.jobs, j)
	return j
}

// body returns the job's body: mostly small, sometimes 256 KiB.
func (j *soakJob) body() string {
	size := 1 << 10
	if j.number%20 == 0 {
		size = 256 << 10
	}
	return fmt.Sprintf(`{"project_id": %d, "priority": "low", "timeouts": {"queue_seconds": 5}, "pad": %q}`, j.number%50, strings.Repeat("x", size))
}

// answer returns the response of an attempt.
func (j *soakJob) answer(visit int) string {
	text := fmt.Sprintf("answer to %d by %d\n", j.number, visit)
	return strings.Repeat(text, j.size/len(text)+1)
}

// numbered returns the responses of all attempts.
func (j *soakJob) numbered() (list []string) {
	for visit := range j.visits {
		list = append(list, j.answer(visit))
	}
	return list
}

// post posts the job, and records its end.
func (j *soakJob) post(client *http.Client, url string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if j.leaves > 0 {
		defer time.AfterFunc(j.leaves, cancel).Stop()
	}
	body := j.body()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(soakHeader, fmt.Sprintf("%d %d", j.number, crc32.ChecksumIEEE([]byte(body))))
	res, err := client.Do(r)
	if err == nil {
		defer res.Body.Close()
		var text []byte
		text, err = io.ReadAll(res.Body)
		j.status, j.own, j.text = res.StatusCode, res.Header.Get("Pilotfish-Reason") != "", string(text)
		j.cut = err != nil
	}
	j.left = ctx.Err() != nil
}

// ServeHTTP is the upstream.
func (b *soakBook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, sum, _ := strings.Cut(r.Header.Get(soakHeader), " ")
	n, _ := strconv.Atoi(number)
	b.mu.Lock()
	j := b.jobs[n]
	b.mu.Unlock()
	v := &soakVisit{}
	j.mu.Lock()
	visit := len(j.visits)
	j.visits = append(j.visits, v)
	j.mu.Unlock()
	got := crc32.NewIEEE()
	if _, err := io.Copy(got, r.Body); err != nil {
		return
	}
	j.note(func() { v.read, v.damaged = true, sum != strconv.FormatUint(uint64(got.Sum32()), 10) })
	text := j.answer(visit)
	_, err := io.WriteString(w, text[:len(text)/2])
	j.note(func() { v.wrote = err == nil })
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err == nil {
		_, err = io.WriteString(w, text[len(text)/2:])
	}
	j.note(func() { v.whole = err == nil })
}

func (j *soakJob) note(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
}

// check returns the rule that the job breaks, or "".
func (j *soakJob) check() string {
	executions := 0
	for _, v := range j.visits {
		if v.damaged {
			return "the body was damaged on its way"
		}
		if v.read {
			executions++
		}
	}
	if executions > 2 { // a job that may have started is retried once at most
		return "executed more than twice"
	}
	switch {
	case j.left, j.own:
		return ""
	case j.status == 0:
		return "no answer at all"
	case len(j.visits) == 0:
		return "an answer from nowhere"
	}
	// An upstream can take a request out of its socket long after the attempt was given up, so the visits
	// need not be in the order of the attempts.
	visit := slices.IndexFunc(j.numbered(), func(whole string) bool { return whole == j.text || j.cut && strings.HasPrefix(whole, j.text) })
	switch {
	case visit < 0:
		return "the answer is not that of one attempt"
	case !j.cut && !j.visits[visit].whole:
		return "an answer that was not sent in full came whole"
	}
	return ""
}

// audit checks the rules for each job. It counts the jobs without a response of an upstream, and those with a
// response after a failed attempt.
func (b *soakBook) audit(t *testing.T) (lost, rescued int) {
	for _, j := range b.jobs {
		if fault := j.check(); fault != "" {
			t.Errorf("job %d: %s: status %d, cut %t, visits %d", j.number, fault, j.status, j.cut, len(j.visits))
		}
		switch {
		case j.left:
		case j.own:
			lost++
		case len(j.visits) > 1:
			rescued++
		}
	}
	return lost, rescued
}
