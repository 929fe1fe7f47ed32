package upstreamclient

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.org/pilotfish/test/peer"
)

// stopped is a connection of a process that is stopped after it has sent a request, until the deadline has passed and, unless
// silent, the response has arrived.
type stopped struct {
	*net.TCPConn
	raw *syscallConn
}

type syscallConn struct {
	syscall.RawConn
	sends, silent bool
	first         bool // it sees the first bytes before the deadline
}

func (c stopped) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

func (c *syscallConn) Read(f func(fd uintptr) bool) error {
	if !c.sends {
		return c.RawConn.Read(f)
	}
	c.sends = false
	_ = c.Control(func(fd uintptr) {
		f(fd)
		if !c.silent {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		}
	})
	if c.first {
		return c.Control(func(fd uintptr) { f(fd) })
	}
	return os.ErrDeadlineExceeded
}

// A response that arrived while the process was stopped is a response, although the deadline has passed.
func TestAResponseThatArrivedBeforeTheDeadlineWasSeen(t *testing.T) {
	long := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Long: " + strings.Repeat("x", 20<<10) + "\r\n\r\nok"
	for name, c := range map[string]struct {
		says  string
		first bool
		want  string
	}{
		"short head": {ok, false, "200 ok"}, "long head": {long, false, "200 ok"}, "no response": {"", false, ErrDeadline.Error()},
		"rest of a long head": {long, true, "200 ok"},
	} {
		t.Run(name, func(t *testing.T) {
			var conn *syscallConn
			client := newClient(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				nc, err := new(net.Dialer).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				raw, err := nc.(*net.TCPConn).SyscallConn()
				conn = &syscallConn{RawConn: raw, silent: c.says == "", first: c.first}
				return stopped{nc.(*net.TCPConn), conn}, err
			}})
			address := peer.Listen(t, func(p *peer.Peer) {
				p.Request()
				p.Say("%s", ok)
				p.Request()
				if c.says == "" {
					p.Request() // until the end
				}
				p.Say("%s", c.says)
			})
			do(t, client, job(address, "{}")) // makes the connection, because a dial needs time
			r := job(address, "{}")
			r.Deadline, conn.sends = time.Now(), true
			res, _, err := client.Do(context.Background(), r)
			if err != nil {
				assert.EqualError(t, err, c.want)
				return
			}
			text, err := res.all()
			require.NoError(t, err)
			assert.Equal(t, c.want, fmt.Sprint(res.StatusCode, " ", text))
		})
	}
}
