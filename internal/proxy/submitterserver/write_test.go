package submitterserver

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// overdue gives the connection a deadline for writing that is over soon, that of an earlier piece.
func (w *response) overdue(in time.Duration) {
	w.armed = time.Now().Add(in)
	_ = w.conn.SetWriteDeadline(w.armed)
}

// A write goes by the deadline of its own piece. That of an earlier piece neither ends it, nor is
// anything lost or sent twice.
func TestAWriteGoesByItsOwnDeadline(t *testing.T) {
	const pieces, size = 4000, 3000
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		for i := range pieces {
			_ = control.SetWriteDeadline(time.Now().Add(time.Hour))
			w.(*response).overdue(time.Duration(i%3-1) * time.Millisecond)
			_, err := w.Write(bytes.Repeat([]byte{byte(i)}, size))
			assert.NoError(t, err)
			if i%2 == 0 {
				assert.NoError(t, control.Flush())
			}
		}
		assert.NoError(t, control.Flush())
		_ = control.SetWriteDeadline(time.Unix(1, 0))
		_, err := w.Write(make([]byte, 2*outSize))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "a piece may have an earlier one than those before it")
	}), nil)
	c := dial(t, s.address)
	_, err := io.WriteString(c, get)
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	time.Sleep(10 * time.Millisecond) // mostly, the socket is full by now
	for i := range pieces {
		came := make([]byte, size)
		_, err := io.ReadFull(res.Body, came)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, size), came, i)
	}
	_, err = io.ReadAll(res.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// After a write has failed, no later one sends anything: a submitter must not take what follows a
// gap for the answer.
func TestAFailedWriteIsTheLast(t *testing.T) {
	large := make([]byte, 2*outSize)
	for _, first := range [][]byte{large, large[:1]} {
		failed := make(chan []error, 1)
		s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			control := http.NewResponseController(w)
			_ = control.SetWriteDeadline(time.Unix(1, 0))
			_, written := w.Write(first)
			if len(first) == 1 {
				written = control.Flush()
			}
			_ = control.SetWriteDeadline(time.Time{})
			_, small := w.Write(large[:1])
			_, none := w.Write(nil)
			_, more := w.Write(large)
			failed <- []error{written, small, none, more, control.Flush()}
		}), nil)
		c := dial(t, s.address)
		_, err := io.WriteString(c, get)
		require.NoError(t, err)
		ends(t, c)
		for i, err := range <-failed {
			assert.ErrorIs(t, err, os.ErrDeadlineExceeded, i)
		}
	}
}

// A flush sends the head, though nothing of the body was written.
func TestAFlushSendsTheHead(t *testing.T) {
	come := make(chan struct{})
	inBoth(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		assert.NoError(t, http.NewResponseController(w).Flush())
		<-come
		_, _ = io.WriteString(w, "ok")
	}), func(t *testing.T, address string, _ func(context.Context) error) {
		c := dial(t, address)
		_, err := io.WriteString(c, get)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		come <- struct{}{}
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, "ok", string(text))
		assert.NoError(t, res.Body.Close())
	})
}
