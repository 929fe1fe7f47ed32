package upstreamclient

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// conn is a connection to an upstream. One request at a time uses it.
type conn struct {
	*lazyconn.Conn
	reused      bool   // it was idle, or has served another request
	sweeps      int    // how many it has been idle for
	interrupted func() // interrupt, made once

	bound    headBound            // of the head that is read
	counting func(p []byte) error // its count, made once
}

// buffers are those of all connections.
var buffers = lazyconn.NewBuffers(4 << 10)

// newConn is a connection on which heads have so many bytes at most.
func newConn(nc net.Conn, maxHead int64) *conn {
	c := &conn{Conn: lazyconn.New(nc, buffers), bound: headBound{most: maxHead}}
	c.interrupted = c.interrupt
	c.counting = c.bound.count
	return c
}

// interrupt makes reads and writes that are under way, and later ones, fail at once.
func (c *conn) interrupt() { _ = c.SetDeadline(time.Unix(1, 0)) } // fails only on a closed connection

const (
	// maxLines bounds the lines of a head.
	maxLines = 1000
	// LineCost is what a line of a head takes in memory besides its bytes.
	LineCost = 128
)

var (
	errHeadBytes = errors.New("the head of the answer is too long")
	errHeadLines = fmt.Errorf("the head of the answer has more than %d lines", maxLines)
)

// headBound bounds a head while it arrives: lines of a few bytes take far more memory than their bytes.
type headBound struct{ most, bytes, lines int64 } // most is of bytes

// count counts what was received next. What came before was all of the head, or nobody would read on.
func (h *headBound) count(p []byte) error {
	err := h.check()
	h.add(p, 1)
	return err
}

// add adds bytes to those of the head; with -1, they are none of it.
func (h *headBound) add(p []byte, sign int64) {
	h.bytes += sign * int64(len(p))
	h.lines += sign * int64(bytes.Count(p, []byte{'\n'}))
}

// check reports whether the head is within its bounds.
func (h *headBound) check() error {
	switch {
	case h.bytes > h.most:
		return errHeadBytes
	case h.lines > maxLines:
		return errHeadLines
	}
	return nil
}
