//go:build !linux

package fakeupstream

import "net"

// awaitSent does nothing: only Linux tells what the peer has received.
func awaitSent(*net.TCPConn, <-chan struct{}) {}
