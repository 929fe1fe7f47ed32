// Package memnet is a network of pipes in memory, for tests with testing/synctest: its
// fake time does not advance while a goroutine waits for a real socket.
package memnet

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Network connects dialers with listeners. The zero value is an empty network.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

// Listen returns a listener for the address. It replaces an earlier listener.
func (n *Network) Listen(address string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{address: address, accept: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[address] = l
	return l
}

// Dial connects to a listener. Without a listener it blocks until ctx is done.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
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

// listener is one address of a network.
type listener struct {
	address string
	accept  chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.address) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
