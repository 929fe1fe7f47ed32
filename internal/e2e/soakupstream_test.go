//go:build soak

package e2e

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

// faulty is an upstream with faults, which writes down what jobs come to it.
type faulty struct {
	t       *testing.T
	address string
	books   *books
	now     atomic.Uint32 // its fault

	mu     sync.Mutex
	server *http.Server
	closed []*http.Server // before
}

// The request and answer headers of a job: its number, the sum of its body, the
// size of the answer it wants, and whether in chunks; the number of the visit.
const (
	jobHeader, sumHeader, sizeHeader, chunkedHeader = "Soak-Job", "Soak-Sum", "Soak-Size", "Soak-Chunked"
	visitHeader                                     = "Soak-Visit"
)

type connKey struct{}

// newFaulty starts an upstream on a loopback address of its own, so that no
// connection of anybody takes its port while it is closed.
func newFaulty(t *testing.T, b *books, n int) *faulty {
	t.Helper()
	u := &faulty{t: t, address: fmt.Sprintf("127.0.0.%d:0", 11+n), books: b}
	u.open()
	t.Cleanup(u.close)
	return u
}

func (u *faulty) open() {
	u.mu.Lock()
	defer u.mu.Unlock()
	l, err := net.Listen("tcp", u.address)
	if !assert.NoError(u.t, err) {
		return
	}
	u.address = l.Addr().String()
	u.server = &http.Server{
		Handler:     u,
		ErrorLog:    log.New(io.Discard, "", 0), // it has enough to say about broken connections
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	go u.server.Serve(l)
}

// close ends the upstream for good.
func (u *faulty) close() {
	for _, s := range append(u.closed, u.server) {
		_ = s.Close()
	}
}

// rest closes the connections that no job uses.
func (u *faulty) rest() { u.server.SetKeepAlivesEnabled(false) }

func (u *faulty) set(f fault) {
	before := fault(u.now.Swap(uint32(f)))
	switch {
	case before == refusing || before == killed:
		u.open()
	case f == killed:
		_ = u.server.Close()
	case f == refusing:
		u.closed = append(u.closed, u.server)
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = u.server.Shutdown(gone) // the port and what is idle; it need not wait
	}
}

func (u *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := fault(u.now.Load())
	if r.Method == http.MethodGet {
		u.report(w, r, f)
		return
	}
	v := u.books.arrive(r.Header.Get(jobHeader), u.address, f)
	defer v.left()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, r.Body); err != nil {
		return
	}
	v.read = true
	v.damaged = r.Header.Get(sumHeader) != strconv.FormatUint(uint64(sum.Sum32()), 10)
	switch f {
	case resetting:
		reset(r)
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
		v.wrote = true
		_, err := io.WriteString(w, piece)
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		switch f {
		case tearing:
			reset(r)
		case truncating:
			panic(http.ErrAbortHandler)
		case slow:
			pause(r, 50*time.Millisecond)
		}
	}
	v.whole = true
}

// report is what an upstream says of itself.
func (u *faulty) report(w http.ResponseWriter, r *http.Request, f fault) {
	switch listing := r.URL.Path == "/v1/cache/projects"; {
	case f == garbling && listing:
		_, _ = io.WriteString(w, `{"projects":[{"id":1},{"id":`+strings.Repeat("[", 10_000))
	case f == garbling:
		_, _ = io.WriteString(w, strings.Repeat("ruleserver_stalled_joblets NaN of {{{\n", 1000))
	case listing:
		_, _ = io.WriteString(w, `{"projects":[{"id":1},{"id":2},{"id":3}]}`)
	default:
		_, _ = io.WriteString(w, "# TYPE ruleserver_stalled_joblets gauge\nruleserver_stalled_joblets{priority=\"low\"} 0\n")
	}
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

// reset resets the connection, once what was written has arrived.
func reset(r *http.Request) {
	c := r.Context().Value(connKey{}).(*net.TCPConn)
	if raw, err := c.SyscallConn(); err == nil {
		for left := 1; left > 0 && r.Context().Err() == nil; {
			_ = raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
			pause(r, 100*time.Microsecond)
		}
	}
	_ = c.SetLinger(0)
	_ = c.Close()
	panic(http.ErrAbortHandler)
}

// pause waits, unless the sidecar goes away.
func pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}
