//go:build soak

package e2e

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

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
	last := len(j.visits) - 1
	want := j.answer(last)
	switch {
	case j.cut && !strings.HasPrefix(want, j.text), !j.cut && j.text != want:
		return "the answer is not that of the last attempt"
	case !j.cut && !j.visits[last].whole:
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
