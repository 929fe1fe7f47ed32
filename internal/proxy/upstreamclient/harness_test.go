package upstreamclient

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/proxy/http1"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http's transport comments on what upstreams send
	goleak.VerifyTestMain(m)
}

// patience is the timeout of every wait of these tests.
const patience = 20 * time.Second

// peer is one connection of an upstream under a test's control.
type peer struct {
	net.Conn
	in *bufio.Reader
	n  int // which connection, from 1
}

// request reads a request with its body, or returns nil at the end of the connection.
func (p *peer) request() (*http.Request, string) {
	r, err := http.ReadRequest(p.in)
	if err != nil {
		return nil, ""
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, ""
	}
	return r, string(body)
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

func (p *peer) say(format string, args ...any) { _, _ = fmt.Fprintf(p.Conn, format, args...) }

// gone waits until the client has closed the connection.
func (p *peer) gone() { _, _ = io.Copy(io.Discard, p.in) }

// listen starts an upstream that runs script for each connection, and then closes it.
func listen(t testing.TB, script func(*peer)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				script(&peer{Conn: c, in: newReader(c), n: n})
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// newClient returns a client that is closed before the upstreams are.
func newClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	cfg.Idle, cfg.IdleTimeout, cfg.MaxHead = cmp.Or(cfg.Idle, 8), time.Minute, 64<<10
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

// pooled returns the number of idle connections to an address.
func pooled(c *Client, address string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.upstreams[address]; u != nil {
		return len(u.idle)
	}
	return 0
}

func job(address, body string) *Request {
	return &Request{
		Address: address, Method: "POST", Target: "/v1/jobs", Host: "localhost", Whole: []byte(body),
		ConnectTimeout: patience, Deadline: time.Now().Add(patience), FirstByte: patience, Withdrawal: new(Withdrawal),
	}
}

// all reads a response to its end and closes it.
func (r *Response) all() (string, error) {
	defer r.Close()
	r.Until = time.Now().Add(patience)
	text, err := io.ReadAll(r)
	return string(text), err
}

// do sends a request that must get a response, and reads the response.
func do(t testing.TB, c *Client, r *Request) (status int, text string, p Progress) {
	t.Helper()
	res, p, err := c.Do(context.Background(), r)
	require.NoError(t, err)
	text, err = res.all()
	require.NoError(t, err)
	return res.StatusCode, text, p
}

// interimFunc makes a function an Interim.
type interimFunc func(status int, h http.Header, received http1.Head)

func (f interimFunc) Interim(status int, h http.Header, received http1.Head) { f(status, h, received) }
