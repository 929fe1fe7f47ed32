// Package loopback reserves addresses for tests that must know a program's address before
// the program starts.
package loopback

import (
	"fmt"
	"net"
)

// Reserve returns an address on 127.0.0.1 that refuses connections until a process listens on
// it with SO_REUSEADDR, as servers do. For about a minute, the system does not choose its port
// for a socket without a port, because a connection of the port is in the state TIME_WAIT.
// Without such a connection, two processes could get the same free port.
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
