//go:build soak

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const soakRate = 200 // jobs per second

// load is submitters that post to one sidecar.
type load struct {
	url   string
	books *books
	by    []*http.Transport // each a submitter with its connections
	wg    sync.WaitGroup
}

func newLoad(address string, b *books) *load {
	l := &load{url: "http://" + address + "/v1/jobs", books: b}
	for range 4 {
		l.by = append(l.by, &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 20 * time.Second, DisableCompression: true})
	}
	return l
}

// run posts jobs at the rate until ctx ends, however long the answers take,
// and then waits for them.
func (l *load) run(ctx context.Context, rng *rand.Rand) {
	began := time.Now()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / soakRate)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			l.wg.Wait()
			for _, t := range l.by {
				t.CloseIdleConnections()
			}
			return
		}
		s := newSubmission(l.books.submit(), rng)
		l.wg.Go(func() { l.books.end(s.job, l.post(s, l.by[n%len(l.by)])) })
	}
}

// submission is a job before it is posted.
type submission struct {
	job     string
	body    []byte
	answer  int // bytes wanted
	chunked bool
	leave   leaving
	after   time.Duration // of leaving
}

// leaving is when a submitter goes away before its time.
type leaving uint8

const (
	stays leaving = iota
	leavesUploading
	leavesWaiting
	leavesReading
)

func newSubmission(job string, rng *rand.Rand) submission {
	s := submission{job: job, chunked: rng.IntN(3) == 0, answer: 1 << rng.IntN(18), after: time.Duration(rng.IntN(20)) * time.Millisecond}
	if rng.IntN(10) == 0 {
		s.leave = leaving(1 + rng.IntN(3))
	}
	size := 1 << 10
	switch d := rng.IntN(100); {
	case d == 0:
		size = 2 << 20
	case d < 10:
		size = 256 << 10
	case d < 30:
		size = 16<<10 + rng.IntN(48<<10)
	}
	facts := fmt.Sprintf(`"session_id": "%s%s", "project_id": %d, "priority": "%s", "timeouts": {"queue_seconds": 5, "evaluate_seconds": 5, "stream_seconds": 60}`,
		sessionPrefix, job, rng.IntN(50), [...]string{"low", "high"}[rng.IntN(2)])
	pad := `"pad": "` + strings.Repeat("x", size) + `"`
	if rng.IntN(4) == 0 {
		facts, pad = pad, facts // what pilotfish looks for comes last
	}
	s.body = []byte("{" + facts + ", " + pad + "}")
	return s
}

// post posts a job and says how it ended.
func (l *load) post(s submission, by *http.Transport) ending {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, s.reader(cancel))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	r.GetBody = nil // the transport must not retry
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(jobHeader, s.job)
	r.Header.Set(sumHeader, strconv.FormatUint(uint64(crc32.ChecksumIEEE(s.body)), 10))
	r.Header.Set(sizeHeader, strconv.Itoa(s.answer))
	if s.chunked {
		r.Header.Set(chunkedHeader, "yes")
		r.ContentLength = -1
	}
	if s.leave == leavesWaiting {
		defer time.AfterFunc(s.after, cancel).Stop()
	}
	res, err := by.RoundTrip(r)
	if err != nil {
		if ctx.Err() != nil {
			return ending{kind: aborted}
		}
		return ending{kind: nothing, text: err.Error()}
	}
	defer res.Body.Close()
	return s.receive(ctx, cancel, res)
}

// reader is the job's body. Some submitters send only half of it.
func (s *submission) reader(cancel context.CancelFunc) io.Reader {
	whole := bytes.NewReader(s.body)
	if s.leave != leavesUploading {
		return whole
	}
	half := io.LimitReader(whole, int64(len(s.body)/2))
	return io.MultiReader(half, readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, errors.New("the submitter leaves")
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// receive reads the answer as it comes.
func (s *submission) receive(ctx context.Context, cancel context.CancelFunc, res *http.Response) ending {
	e := ending{kind: whole, status: res.StatusCode, visit: res.Header.Get(visitHeader)}
	var got bytes.Buffer
	buffer := make([]byte, 16<<10)
	for {
		n, err := res.Body.Read(buffer)
		got.Write(buffer[:n])
		if err == nil && s.leave == leavesReading {
			cancel()
		}
		if err == io.EOF {
			break
		}
		if err != nil && ctx.Err() != nil {
			return ending{kind: aborted}
		}
		if err != nil {
			e.kind, e.text = cut, err.Error()
			break
		}
	}
	want := answerText(s.job, strconv.Itoa(s.answer))
	e.right = got.String() == want || e.kind == cut && strings.HasPrefix(want, got.String())
	if reason := res.Header.Get("Pilotfish-Reason"); reason != "" {
		e.kind, e.text = own, reason
	}
	return e
}
