package upstreamclient

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lateWrites is a connection whose writes return long after the other side has read the data.
type lateWrites struct {
	net.Conn
	until chan struct{}
}

func (c lateWrites) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	<-c.until
	return n, err
}

// Bytes that the upstream may have received count as sent even if the write has not returned: the upstream
// may have started the job before its connection ended.
func TestWhatMayHaveArrivedWasSent(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	dial := network(func(p *peer) { _, _ = p.in.ReadString('\n') })
	c := newClient(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		return lateWrites{nc, end}, err
	}})
	r := job("up:1", "")
	r.Body, r.Length = strings.NewReader("{}"), 2
	_, p, err := c.Do(t.Context(), r)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, Progress{Begun: true}, p)
}

var errBroken = errors.New("broken")

// recorder is a connection that records all writes, also after an interruption, because the interruption
// can be undone.
type recorder struct {
	net.Conn
	taken strings.Builder
}

func (r *recorder) Write(p []byte) (int, error) { return r.taken.Write(p) }
func (r *recorder) SetDeadline(time.Time) error { return nil }

// After an error, a chunked body gets no last chunk: the upstream would take the body as complete.
func TestAChunkedBodyThatFailsHasNoEnd(t *testing.T) {
	near, _ := net.Pipe()
	upstream := &recorder{Conn: near}
	cn, r := newConn(upstream, 0), &Request{Body: failing{strings.NewReader("ab"), errBroken}, Length: -1, Withdrawal: new(Withdrawal)}
	s := sending{conn: cn, clock: newClock(t.Context(), cn, r)}
	err := s.sendBody(r, make([]byte, 8))
	require.ErrorIs(t, err, errBroken)
	assert.Equal(t, "2\r\nab\r\n", upstream.taken.String())
}
