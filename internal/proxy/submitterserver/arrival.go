package submitterserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/record"
)

// next reads a request. If over is true, the connection was closed or handed over. r is nil if no request has started.
func (c *conn) next() (r *http.Request, over bool) {
	c.skipLineEnds()
	seen, _ := c.In.Peek(c.In.Buffered()) // does not fail
	if len(seen) == 0 {                   // only line ends after a POST
		c.posted = false
		return nil, false
	}
	size, err := http1.Size(seen), error(nil)
	if size == 0 {
		seen, err = c.restOfHead(seen)
		size = http1.Size(seen)
	}
	switch {
	case seen == nil:
	case !prefaced(seen):
		if r, err = c.request(seen, size); err == nil {
			return r, false
		}
	case c.served == 0:
		c.handOver(seen)
		return nil, true
	default: // request smuggling: net/http would treat the handed connection as a new one
		err = fmt.Errorf("%w: a preface of HTTP/2 after a request", record.ErrHead)
	}
	c.refuse(err)
	return nil, true
}

// skipLineEnds skips the line ends that old clients send after the body of a POST, as net/http does.
func (c *conn) skipLineEnds() {
	if !c.posted {
		return
	}
	const most = 4
	first, _ := c.In.Peek(min(most, c.In.Buffered()))                    // does not fail
	_, _ = c.In.Discard(len(first) - len(bytes.TrimLeft(first, "\r\n"))) // does not fail
}

// request parses the request that starts with seen and whose head has this size.
func (c *conn) request(seen []byte, size int) (*http.Request, error) {
	if size == 0 {
		return nil, fmt.Errorf("%w: it is incomplete, or its first line is not that of a request", record.ErrHead)
	}
	empty := c.response.header
	c.response.header = nil // an error response must not have the request's fields
	r, head, err := http1.Request(c.ctx, string(seen[:size]), empty)
	if err = invalid(r, &head, err); err != nil {
		return nil, err
	}
	if c.In == nil {
		c.Unread(bytes.Clone(seen[size:])) // does not keep the head in memory while the job waits
	} else {
		_, _ = c.In.Discard(size) // does not fail
	}
	c.prepare(r, &head)
	if ambiguous(r, &head) {
		c.response.close = true
	}
	return r, nil
}

// ambiguous reports whether other servers may read another body (RFC 9112, 6.1): one has a length and is chunked, or is chunked in
// HTTP/1.0, where net/http removes Transfer-Encoding.
func ambiguous(r *http.Request, head *http1.Head) bool {
	switch {
	case r.ContentLength < 0:
		return head.Has("Content-Length")
	case r.ProtoMinor == 0:
		return head.Has("Transfer-Encoding")
	}
	return false
}

const (
	// headTimeout is the timeout for the rest of a head after its first bytes.
	headTimeout = 10 * time.Second
	// longHead is the size of the largest head that net/http reads, in bytes: 4 KiB more than its limit.
	longHead = 36 << 10
)

// restOfHead waits for the rest of a head. If that does not arrive, head is nil, and err is the reason for the error response, or
// nil for none. Only complete heads are parsed, because net/http's parser holds up to a hundred bytes for each
// byte of an incomplete head. A head that exceeds the connection's buffer counts in the budget.
func (c *conn) restOfHead(seen []byte) (head []byte, err error) {
	c.startHead()
	for len(seen) < maxHead {
		if !plausible(seen) {
			return seen, nil
		}
		if _, err := c.In.Peek(len(seen) + 1); err != nil {
			return ended(seen, err), nil
		}
		before := len(seen)
		seen, _ = c.In.Peek(c.In.Buffered()) // does not fail
		if headEnds(seen[max(0, before-3):]) {
			return seen, nil
		}
	}
	if err := c.server.cfg.Budget.Reserve(longHead); err != nil {
		return nil, err
	}
	defer c.server.cfg.Budget.Return(longHead)
	long := append(make([]byte, 0, longHead), seen...)
	c.Release() // the buffer held only the copied bytes
	for len(long) < longHead {
		n, err := c.Read(long[len(long):longHead])
		before := len(long)
		if long = long[:before+n]; err != nil {
			return ended(long, err), nil
		}
		if headEnds(long[before-3:]) {
			return long, nil
		}
	}
	return nil, record.ErrLongHead
}

func (c *conn) startHead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.since = starting, time.Now()
	_ = c.SetReadDeadline(c.since.Add(headTimeout)) // fails only on a closed connection
}

// ended returns the received part of a head if the error was the end of the connection: the request is invalid then. After
// other errors, such as a timeout, there is no response, as in net/http.
func ended(seen []byte, err error) []byte {
	if errors.Is(err, io.EOF) {
		return seen
	}
	return nil
}

// headEnds reports whether p contains an empty line after another line.
func headEnds(p []byte) bool {
	return bytes.Contains(p, []byte("\n\r\n")) || bytes.Contains(p, []byte("\n\n"))
}

// plausible reports whether line can be the start of a request line. If not, the rest of the head is not awaited.
func plausible(line []byte) bool {
	first, _, whole := bytes.Cut(line, []byte("\n"))
	return http1.IsToken(first[:min(1, len(first))]) && (!whole || bytes.Contains(first, []byte(" HTTP/")))
}

// handOver hands the connection to net/http, with the bytes that were read from it.
func (c *conn) handOver(seen []byte) {
	to := c.server.newHanded(c.tcp, bytes.Clone(seen))
	c.Release()
	c.set(handed)                      // from now on it is not interrupted
	_ = c.tcp.SetDeadline(time.Time{}) // fails only on a closed connection, which net/http finds out
	c.server.mu.Lock()
	c.server.handed[to] = time.Now()
	c.server.mu.Unlock()
	c.hand(to)
	c.forget()
}

// prefaced reports whether seen is the start of an HTTP/2 preface.
func prefaced(seen []byte) bool {
	const preface = "PRI * HTTP/2.0\r\n"
	n := min(len(seen), len(preface))
	return string(seen[:n]) == preface[:n]
}

// refuse closes the connection, after an error response unless err is nil.
func (c *conn) refuse(err error) {
	if err != nil {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // if this fails, so does the write
		w := &c.response
		w.begin()
		w.head, w.old = false, false
		refusal(w, err)
		_ = w.FlushError() // fails only if the submitter has disconnected
		w.abandon()
		c.set(lingering)
		linger(c.tcp)
	}
	c.forget()
	_ = c.tcp.Close()
}

// refusal writes an error response, after which the connection ends.
func refusal(w http.ResponseWriter, err error) {
	w.Header().Set("Connection", "close")
	record.ProblemOf(err).Write(w)
}
