// Package loopback finds addresses for tests: a program that others must know before it
// starts must know where to listen.
package loopback

import (
	"fmt"
	"net"
)

// Reserve returns an address of this machine that refuses connections until somebody listens
// there by that very address with SO_REUSEADDR, as servers do. For about a minute the system
// gives its port to nobody who asks for any: the side of a connection that closed first is in
// the state TIME_WAIT. A port that was merely free a moment ago may be given to two who ask.
func Reserve() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("reserve a port: %w", err)
	}
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return "", fmt.Errorf("reserve a port: %w", err)
	}
	defer there.Close()
	here, err := l.Accept()
	if err != nil {
		return "", fmt.Errorf("reserve a port: %w", err)
	}
	return l.Addr().String(), here.Close()
}
