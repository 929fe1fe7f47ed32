//go:build soak

package e2e

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/pkg/fakeupstream"
)

// faulty is an upstream with faults, which writes down what jobs come to it.
type faulty struct {
	*fakeupstream.Upstream
	t     *testing.T
	books *books
	now   atomic.Uint32 // its fault
}

// fewer bytes than the shortest answer has.
const fewer = 10

// The request and answer headers of a job: its number, the sum of its body, the
// size of the answer it wants, and whether in chunks; the number of the visit.
const (
	jobHeader, sumHeader, sizeHeader, chunkedHeader = "Soak-Job", "Soak-Sum", "Soak-Size", "Soak-Chunked"
	visitHeader                                     = "Soak-Visit"
)

// newFaulty starts an upstream on a loopback address of its own, so that no
// other connection takes its port while it is closed.
func newFaulty(t *testing.T, b *books, n int) *faulty {
	t.Helper()
	u := &faulty{t: t, books: b}
	u.Upstream = fakeupstream.New(t, fakeupstream.Options{
		Handler: http.HandlerFunc(u.work), Listen: fmt.Sprintf("127.0.0.%d:0", 11+n), Cached: []string{"1", "2", "3"},
	})
	return u
}

// set replaces the upstream's fault. What is not done here, work does.
func (u *faulty) set(f fault) {
	u.now.Store(uint32(f))
	assert.NoError(u.t, u.Refuse(f == refusing))
	var jobs, reports fakeupstream.Fault
	switch f {
	case killed:
		u.Kill()
	case resetting:
		jobs = fakeupstream.Fault{Cut: fakeupstream.CutRST, CutAfter: fakeupstream.BeforeHeaders}
	case tearing:
		jobs = fakeupstream.Fault{Cut: fakeupstream.CutRST, CutAfter: fewer}
	case truncating:
		jobs = fakeupstream.Fault{Cut: fakeupstream.CutFIN, CutAfter: fewer}
	case garbling:
		reports = fakeupstream.Fault{Body: `{"projects":[{"id":1},{"id":` + strings.Repeat("[", 10_000)}
	}
	u.SetFault(jobs)
	u.SetReportFault(reports)
}

func (u *faulty) work(w http.ResponseWriter, r *http.Request) {
	u.Forget() // the books have it all
	f := fault(u.now.Load())
	v := u.books.arrive(r.Header.Get(jobHeader), u.Address(), f)
	defer v.left()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, r.Body); err != nil {
		return
	}
	v.read = true
	v.damaged = r.Header.Get(sumHeader) != strconv.FormatUint(uint64(sum.Sum32()), 10)
	switch f {
	case hanging:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case unwilling:
		v.notStarted = true
		w.Header().Set("Job-Started", "no")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case slow:
		pause(r, 300*time.Millisecond)
	}
	u.answer(w, r, f, v)
}

// answer streams as many bytes as the job wants, in three pieces.
func (u *faulty) answer(w http.ResponseWriter, r *http.Request, f fault, v *visit) {
	text := answerText(r.Header.Get(jobHeader), r.Header.Get(sizeHeader))
	if r.Header.Get(chunkedHeader) == "" {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.Header().Set(visitHeader, strconv.Itoa(v.number))
	v.status = http.StatusOK
	if f == failing {
		v.status = http.StatusInternalServerError
	}
	w.WriteHeader(v.status)
	third := len(text)/3 + 1
	for len(text) > 0 {
		piece := text[:min(third, len(text))]
		text = text[len(piece):]
		n, err := io.WriteString(w, piece)
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		// Nothing leaves if the connection is cut before the headers, or was closed
		// as idle while the job was on its way. Of another error nobody knows.
		nothing := errors.Is(err, net.ErrClosed) || n == 0 && errors.Is(err, fakeupstream.ErrCut)
		v.wrote = v.wrote || !nothing
		if err != nil {
			return
		}
		if f == slow {
			pause(r, 50*time.Millisecond)
		}
	}
	v.whole = true
}

// answerText is the body of a job's answer.
func answerText(job, size string) string {
	n, err := strconv.Atoi(size)
	if err != nil {
		panic("BUG: a job without a size: " + err.Error())
	}
	text := "answer to " + job + "\n"
	return strings.Repeat(text, n/len(text)+1)
}

// pause waits, unless the sidecar goes away.
func pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}
