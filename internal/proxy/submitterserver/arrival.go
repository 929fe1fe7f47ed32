package submitterserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"example.org/pilotfish/internal/proxy/http1"
)

// next reads a request, if there is a plain one. over reports that the connection has ended here.
func (c *conn) next() (r *http.Request, over bool) {
	c.skipLineEnds()
	seen, _ := c.In.Peek(c.In.Buffered()) // there are as many
	if len(seen) == 0 {                   // line ends after a POST, and nothing else yet
		c.posted = false
		return nil, false
	}
	status := ""
	if !headEnds(seen) {
		seen, status = c.restOfHead(seen)
	}
	switch {
	case seen == nil:
	case c.served > 0 && prefaced(seen):
		status = "400 Bad Request"
	default:
		if r := c.request(seen); r != nil {
			return r, false
		}
		c.handOn(seen)
		return nil, true
	}
	c.refuse(status)
	return nil, true
}

// skipLineEnds skips line ends after the body of a POST, which old submitters
// send, as net/http does. It must happen here: net/http would not know that a POST came before.
func (c *conn) skipLineEnds() {
	if !c.posted {
		return
	}
	const most = 4
	first, _ := c.In.Peek(min(most, c.In.Buffered()))                    // there are as many
	_, _ = c.In.Discard(len(first) - len(bytes.TrimLeft(first, "\r\n"))) // they are buffered
}

// request returns the request that begins with seen if it is plain and in the buffer. Otherwise it returns nil.
func (c *conn) request(seen []byte) *http.Request {
	size := http1.Size(seen)
	if size == 0 || c.In == nil {
		return nil
	}
	r, head, err := http1.Request(c.ctx, string(seen[:size]))
	if err != nil || !plain(r, &head) {
		return nil
	}
	_, _ = c.In.Discard(size) // it was received
	c.prepare(r, head.Fields)
	if r.ContentLength < 0 && head.Has("Content-Length") { // others may read another body (RFC 9112, 6.1)
		c.response.close = true
	}
	return r
}

const (
	// headTimeout is the timeout for a head, from its first bytes on.
	headTimeout = 10 * time.Second
	// longHead is the size of the largest head that net/http reads, in bytes: 4 KiB more than its limit.
	longHead = 36 << 10
)

// restOfHead waits for the rest of a head. It returns nil, and a status to refuse the request with or "", if that does not
// arrive. net/http gets whole heads only: it makes up to a hundred bytes of each byte of a head, and holds them until the
// head is complete. A head that does not fit into the connection's buffer counts in the budget.
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
		seen, _ = c.In.Peek(c.In.Buffered()) // there are as many
		if headEnds(seen[max(0, before-3):]) {
			return seen, ""
		}
	}
	if c.server.cfg.Budget.Reserve(longHead) != nil {
		return nil, "503 Service Unavailable"
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

// startHead enters the state in which the rest of a head is awaited.
func (c *conn) startHead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.since = starting, time.Now()
	c.arm(c.since.Add(headTimeout))
}

// ended returns what was received of a head that ends with err. net/http answers the end of a connection within a head, and
// not a timeout.
func ended(seen []byte, err error) []byte {
	if errors.Is(err, io.EOF) {
		return seen
	}
	return nil
}

// headEnds reports whether an empty line follows a line.
func headEnds(p []byte) bool {
	return bytes.Contains(p, []byte("\n\r\n")) || bytes.Contains(p, []byte("\n\n"))
}

// plausible reports whether a request line can begin with line. If it cannot, net/http refuses it without the rest of the head.
func plausible(line []byte) bool {
	first, _, whole := bytes.Cut(line, []byte("\n"))
	return http1.IsToken(first[:min(1, len(first))]) && (!whole || bytes.Contains(first, []byte(" HTTP/")))
}

// handOn gives the connection to net/http, with what was read from it.
func (c *conn) handOn(seen []byte) {
	to := c.server.newHanded(c.tcp, bytes.Clone(seen), c.hand)
	c.Release()
	c.set(handed)                  // from now on nobody interrupts it
	_ = c.SetDeadline(time.Time{}) // fails only on a closed connection, which net/http finds out
	c.server.mu.Lock()
	c.server.handed[to] = time.Now()
	c.server.mu.Unlock()
	c.hand(to)
	c.forget()
}

// prefaced reports whether the bytes are a start of HTTP/2's preface.
func prefaced(seen []byte) bool {
	const preface = "PRI * HTTP/2.0\r\n"
	n := min(len(seen), len(preface))
	return string(seen[:n]) == preface[:n]
}

// refuse ends a connection, with an error response unless the status is "". It is for requests that are not handed on. Among
// them is the preface of HTTP/2 after a request of HTTP/1.1: it may be smuggled in, and net/http would take the connection
// for a new one.
func (c *conn) refuse(status string) {
	if status != "" {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // if this fails, so does the write
		_, _ = io.WriteString(c.tcp, "HTTP/1.1 "+status+"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"+status)
		c.set(lingering)
		linger(c.tcp)
	}
	c.forget()
	_ = c.tcp.Close()
}
