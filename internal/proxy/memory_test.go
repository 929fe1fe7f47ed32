package proxy_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
)

// memory is a network of pipes, for bubbles of fake time: a goroutine that
// waits for a socket would keep that time from passing.
type memory struct {
	mu        sync.Mutex
	listeners map[string]*pipes
}

// pipes is a listener of a memory.
type pipes struct {
	address string
	accept  chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

type pipeAddr string

func (pipeAddr) Network() string  { return "tcp" }
func (a pipeAddr) String() string { return string(a) }

func newMemory() *memory { return &memory{listeners: map[string]*pipes{}} }

func (m *memory) listen(address string) net.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &pipes{address: address, accept: make(chan net.Conn), closed: make(chan struct{})}
	m.listeners[address] = l
	return l
}

// dial connects to a listener; an address without one never answers.
func (m *memory) dial(ctx context.Context, _, address string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[address]
	m.mu.Unlock()
	if l == nil {
		<-ctx.Done()
		return nil, fmt.Errorf("dial %s: %w", address, ctx.Err())
	}
	here, there := net.Pipe()
	select {
	case l.accept <- there:
		return here, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: connection refused", address)
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", address, ctx.Err())
	}
}

func (m *memory) upstream(t testing.TB, address string, script func(*peer)) string {
	return scriptedOn(t, m.listen(address), script).address
}

// client is a submitter's, over the memory.
func (m *memory) client(t testing.TB) *http.Client {
	tr := &http.Transport{DisableCompression: true, DialContext: m.dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return pipeAddr(l.address) }
