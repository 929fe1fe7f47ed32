package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

func TestASpentBodyIsNotTheSubmittersFault(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "/", nil)
	require.NoError(t, err)
	x := exchange{r: r}
	x.book.Lease = &balancer.Lease{Choice: &pool.Choice{Address: "up:1"}}
	f := x.failureVerdict(upstreamclient.Progress{Begun: true}, &upstreamclient.BodyError{Err: intake.ErrSpent})
	assert.Equal(t, pool.Gone, f.Outcome, "nor the upstream's")
	assert.Equal(t, http.StatusBadGateway, record.ProblemOf(f.err).Status)
	f = x.failureVerdict(upstreamclient.Progress{Begun: true}, &upstreamclient.BodyError{Err: intake.ErrTooLarge})
	assert.Equal(t, http.StatusRequestEntityTooLarge, record.ProblemOf(f.err).Status)
}

// Only a body whose framing is broken is the submitter's fault. A connection that ends, in
// whichever way, is none.
func TestWhyABodyCouldNotBeRead(t *testing.T) {
	odd := errors.New("an error that nobody knows")
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		ctx    context.Context
		proto  int
		length int64
		err    error
		status int
	}{
		{t.Context(), 1, 10, syscall.ECONNRESET, record.StatusGone},
		{t.Context(), 1, 10, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, record.StatusGone},
		{t.Context(), 1, 10, io.ErrUnexpectedEOF, record.StatusGone},
		{t.Context(), 1, 10, io.ErrNoProgress, record.StatusGone},
		{t.Context(), 1, 10, odd, record.StatusGone},
		{t.Context(), 1, -1, odd, http.StatusBadRequest},
		{t.Context(), 1, -1, io.ErrUnexpectedEOF, record.StatusGone},
		{left, 1, -1, odd, record.StatusGone},
		{left, 2, 10, odd, record.StatusGone},
		{t.Context(), 2, 10, odd, record.StatusGone},
		{t.Context(), 1, 10, os.ErrDeadlineExceeded, http.StatusRequestTimeout},
		{t.Context(), 1, -1, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, http.StatusRequestTimeout},
		{t.Context(), 1, 10, intake.ErrNoRoom, http.StatusServiceUnavailable},
		{t.Context(), 1, 10, intake.ErrTooLarge, http.StatusRequestEntityTooLarge},
	} {
		r := (&http.Request{ProtoMajor: c.proto, ContentLength: c.length}).WithContext(c.ctx)
		x := exchange{r: r}
		err := x.sendingFailed(fmt.Errorf("reading the body: %w", c.err))
		assert.Equal(t, c.status, record.ProblemOf(err).Status, "HTTP/%d, length %d: %v", c.proto, c.length, c.err)
	}
}

// A response holds a large buffer only while its pieces are large.
func TestCopyBuffers(t *testing.T) {
	for length, want := range map[int64]int{-1: smallCopy, smallCopy: smallCopy, smallCopy + 1: largeCopy} {
		assert.Len(t, newCopyBuffer(length).bytes, want)
	}
	b := newCopyBuffer(-1)
	for _, c := range []struct{ piece, next int }{
		{1, smallCopy}, {smallCopy, largeCopy}, {largeCopy, largeCopy}, {smallCopy, largeCopy}, {smallCopy - 1, smallCopy}, {smallCopy - 1, smallCopy},
	} {
		b = b.fit(c.piece)
		assert.Len(t, b.bytes, c.next, "after a piece of %d bytes", c.piece)
	}
}
