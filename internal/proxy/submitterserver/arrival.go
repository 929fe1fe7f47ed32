package submitterserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"example.org/pilotfish/internal/proxy/http1"
)

// next reads a request. If over is true, the connection was closed or handed over. r is nil if no request has started.
func (c *conn) next() (r *http.Request, over bool) {
	c.skipLineEnds()
	seen, _ := c.In.Peek(c.In.Buffered()) // does not fail
	if len(seen) == 0 {                   // only line ends after a POST
		c.posted = false
		return nil, false
	}
	size, status := http1.Size(seen), ""
	if size == 0 {
		seen, status = c.restOfHead(seen)
		size = http1.Size(seen)
	}
	switch {
	case seen == nil:
	case !prefaced(seen):
		if r, status = c.request(seen, size); r != nil {
			return r, false
		}
	case c.served == 0:
		c.handOn(seen)
		return nil, true
	default: // request smuggling: net/http would treat the handed connection as a new one
		status = badRequest
	}
	c.refuse(status)
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

// request parses the request that starts with seen and whose head has this size. If it is invalid, r is nil, and status is the
// status of the error response.
func (c *conn) request(seen []byte, size int) (r *http.Request, status string) {
	if size == 0 {
		return nil, badRequest
	}
	r, head, err := http1.Request(c.ctx, string(seen[:size]))
	if status = invalid(r, &head, err); status != "" {
		return nil, status
	}
	if c.In == nil {
		c.Unread(bytes.Clone(seen[size:])) // does not keep the head in memory while the job waits
	} else {
		_, _ = c.In.Discard(size) // does not fail
	}
	c.prepare(r, head.Fields)
	if ambiguous(r, &head) {
		c.response.close = true
	}
	return r, ""
}

// ambiguous reports whether other servers may read another body (RFC 9112, 6.1): one has a length and is chunked, or is chunked in
// HTTP/1.0, where net/http removes Transfer-Encoding.
func ambiguous(r *http.Request, head *http1.Head) bool {
	switch {
	case r.ContentLength < 0:
		return head.Fields == nil || head.Has("Content-Length")
	case r.ProtoMinor == 0:
		return head.Fields == nil || head.Has("Transfer-Encoding")
	}
	return false
}

const (
	// headTimeout is the timeout for the rest of a head after its first bytes.
	headTimeout = 10 * time.Second
	// longHead is the size of the largest head that net/http reads, in bytes: 4 KiB more than its limit.
	longHead = 36 << 10
	// noMemory is the status of a request whose head exceeds the budget.
	noMemory   = "503 Service Unavailable"
	badRequest = "400 Bad Request"
)

// restOfHead waits for the rest of a head. If that does not arrive, head is nil, and status is the status of the error
// response, or "" for none. Only complete heads are parsed, because net/http's parser holds up to a hundred bytes for each
// byte of an incomplete head. A head that exceeds the connection's buffer counts in the budget.
func (c *conn) restOfHead(seen []byte) (head []byte, status string) {
	c.startHead()
	for len(seen) < maxHead {
		if !plausible(seen) {
			return seen, ""
		}
		if _, err := c.In.Peek(len(seen) + 1); err != nil {
			return ended(seen, err), ""
		}
		before := len(seen)
		seen, _ = c.In.Peek(c.In.Buffered()) // does not fail
		if headEnds(seen[max(0, before-3):]) {
			return seen, ""
		}
	}
	if c.server.cfg.Budget.Reserve(longHead) != nil {
		return nil, noMemory
	}
	defer c.server.cfg.Budget.Return(longHead)
	long := append(make([]byte, 0, longHead), seen...)
	c.Release() // nothing else was buffered
	for len(long) < longHead {
		n, err := c.Read(long[len(long):longHead])
		before := len(long)
		if long = long[:before+n]; err != nil {
			return ended(long, err), ""
		}
		if headEnds(long[before-3:]) {
			return long, ""
		}
	}
	return nil, "431 Request Header Fields Too Large"
}

// startHead enters the state starting.
func (c *conn) startHead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.since = starting, time.Now()
	c.arm(c.since.Add(headTimeout))
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

// handOn hands the connection to net/http, with the bytes that were read from it.
func (c *conn) handOn(seen []byte) {
	to := c.server.newHanded(c.tcp, bytes.Clone(seen))
	c.Release()
	c.set(handed)                  // from now on it is not interrupted
	_ = c.SetDeadline(time.Time{}) // fails only on a closed connection, which net/http finds out
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

// refuse closes the connection, after an error response unless status is "".
func (c *conn) refuse(status string) {
	if status != "" {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // if this fails, so does the write
		later := ""
		if status == noMemory {
			later = "Retry-After: 1\r\n"
		}
		_, _ = io.WriteString(c.tcp, "HTTP/1.1 "+status+"\r\n"+later+"Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"+status)
		c.set(lingering)
		linger(c.tcp)
	}
	c.forget()
	_ = c.tcp.Close()
}
