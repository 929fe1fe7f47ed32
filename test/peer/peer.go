// Package peer is an upstream under a test's control, down to the byte.
package peer

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Peer is one connection of an upstream.
type Peer struct {
	net.Conn
	In *bufio.Reader
	N  int // which connection, from 1

	t testing.TB
}

// Request is a request that was read with its body.
type Request struct {
	*http.Request
	Text string // the body
}

// Over returns a peer over a connection.
func Over(t testing.TB, c net.Conn) *Peer { return &Peer{Conn: c, In: bufio.NewReader(c), t: t} }

// Listen starts an upstream that runs script for each connection and then closes it. It returns the address.
func Listen(t testing.TB, script func(*Peer)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return Serve(t, l, script)
}

// Serve is Listen with another listener.
func Serve(t testing.TB, l net.Listener, script func(*Peer)) (address string) {
	t.Helper()
	var open sync.WaitGroup
	open.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p := Over(t, c)
			p.N = n
			open.Go(func() {
				defer p.Close()
				script(p)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return l.Addr().String()
}

// Request reads the next request with its body, or returns nil if the connection ends.
func (p *Peer) Request() *Request {
	head, err := p.Head()
	if err != nil {
		return nil
	}
	r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(head), p.In)))
	if err != nil {
		p.t.Errorf("a malformed request: %v\n%s", err, head)
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	return &Request{r, string(body)}
}

// Head reads the lines up to the empty one.
func (p *Peer) Head() (string, error) {
	var head strings.Builder
	for {
		line, err := p.In.ReadString('\n')
		if err != nil {
			return "", err
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String(), nil
		}
	}
}

// Say writes a text. It ignores errors: the other side may have closed the connection.
func (p *Peer) Say(format string, args ...any) { _, _ = fmt.Fprintf(p.Conn, format, args...) }

// Reset closes the connection with RST.
func (p *Peer) Reset() {
	_ = p.Conn.(*net.TCPConn).SetLinger(0)
	_ = p.Close()
}

// Gone blocks until the other side has closed the connection.
func (p *Peer) Gone() { _, _ = io.Copy(io.Discard, p.In) }
