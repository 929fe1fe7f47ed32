package upstreamclient

import (
	"cmp"
	"context"
	"io"
	"log"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http's transport comments on what upstreams send
	goleak.VerifyTestMain(m)
}

// patience is the timeout of every wait of these tests.
const patience = 2 * time.Minute

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
