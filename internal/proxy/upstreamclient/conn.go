package upstreamclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/proxy/lazyconn"
)

// conn is a connection to an upstream. It serves one request at a time.
type conn struct {
	*lazyconn.Conn
	reused      bool   // it was idle in the pool
	sweeps      int    // number of sweeps since it became idle
	interrupted func() // interrupt, as a field to save allocations
	maxHead     int64  // maximum size of a head, in bytes
}

// buffers are shared by all connections.
var buffers = lazyconn.NewBuffers(4 << 10)

// newConn returns a connection on which a head has at most maxHead bytes.
func newConn(nc net.Conn, maxHead int64) *conn {
	c := &conn{Conn: lazyconn.New(nc, buffers), maxHead: maxHead}
	c.interrupted = c.interrupt
	return c
}

// interrupt makes current and later reads and writes fail at once.
func (c *conn) interrupt() { _ = c.SetDeadline(time.Unix(1, 0)) } // fails only on a closed connection

// lateHead is the time to read a head, or the rest of one, that had arrived when the deadline passed.
const lateHead = time.Second

// rescue moves the deadline of a read that has ended at it, and reports whether it did: bytes have arrived, because this process
// was stopped for so long that the deadline and the bytes were seen at the same time.
func (c *conn) rescue(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || !c.Arrived() || c.SetReadDeadline(time.Now().Add(lateHead)) != nil {
		return false
	}
	c.Failed = nil
	return true
}

// maxLines is the maximum number of lines of a header.
const maxLines = 1000

// headText reads the text of one head, including its final empty line.
func (c *conn) headText() (string, error) {
	there, _ := c.In.Peek(c.In.Buffered())
	if size := http1.Size(there); size > 0 && int64(size) <= c.maxHead { // the usual case: all of it was received
		text := string(there[:size])
		_, _ = c.In.Discard(size)
		return text, checkLines(text)
	}
	var text strings.Builder
	for begins, late := true, false; ; { // line by line
		line, err := c.In.ReadSlice('\n')
		text.Write(line)
		switch {
		case int64(text.Len()) > c.maxHead:
			return "", errors.New("the response header is too long")
		case errors.Is(err, bufio.ErrBufferFull):
			begins = false
			continue
		case errors.Is(err, io.EOF):
			return "", io.ErrUnexpectedEOF
		case !late && c.rescue(err):
			late, begins = true, begins && len(line) == 0
			continue
		case err != nil:
			return "", err
		case !strings.HasPrefix(text.String(), "HTTP/"): // it may never end
			return "", fmt.Errorf("malformed status line %.40q", text.String())
		case begins && len(bytes.TrimRight(line, "\r\n")) == 0:
			return text.String(), checkLines(text.String())
		}
		begins = true
	}
}

// checkLines checks the number of header lines. Short lines take far more memory than their bytes.
func checkLines(text string) error {
	if len(text) > maxLines && strings.Count(text, "\n") > maxLines {
		return fmt.Errorf("the response header has more than %d lines", maxLines)
	}
	return nil
}
