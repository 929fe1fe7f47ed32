package upstreamclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/peer"
)

func FuzzRequestLines(f *testing.F) {
	for _, target := range []string{"/", "/a b", "/a\r\nX: y", "*", "/\x7f", "/\xff", "http://x/", "/a HTTP/1.1", "/\u0085\xe8"} {
		f.Add("GET", target, "localhost", "X", "1")
	}
	f.Fuzz(func(t *testing.T, method, target, host, name, value string) {
		r := &Request{Address: "up:1", Method: method, Target: target, Host: host, Header: http.Header{name: {value}}}
		head, err := r.appendHead(nil)
		if err != nil {
			return
		}
		lines := bytes.Split(head, []byte("\r\n"))
		require.LessOrEqual(t, len(lines), 6)
		assert.Equal(t, 2, bytes.Count(lines[0], []byte(" ")), "three parts")
		assert.Equal(t, target, string(bytes.Split(lines[0], []byte(" "))[1]))
		assert.Equal(t, len(lines)-1, bytes.Count(head, []byte("\n")))
		if u, err := url.ParseRequestURI(target); err == nil && u.Host == "" {
			_, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
			assert.NoError(t, err, "%q", head)
		}
	})
}

func TestTheHostOfARequestWithoutOne(t *testing.T) {
	for address, want := range map[string]string{
		"up:1": "up:1", "10.0.0.1:80": "10.0.0.1:80", "[::1]:80": "[::1]:80",
		"unix:/run/up.sock": "localhost", "[fe80::1%eth0]:80": "[fe80::1]:80", "[::1%lo]:80": "[::1]:80",
	} {
		r := &Request{Address: address, Method: http.MethodGet, Target: "/"}
		head, err := r.appendHead(nil)
		require.NoError(t, err)
		assert.Equal(t, "GET / HTTP/1.1\r\nHost: "+want+"\r\n\r\n", string(head))
	}
}

type failing struct {
	io.Reader
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

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
	dial := network(t, func(p *peer.Peer) { _, _ = p.In.ReadString('\n') })
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
