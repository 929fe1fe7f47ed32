package submitterserver

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"example.org/pilotfish/internal/proxy/http1"
)

// outSize is the size of the write buffer of a response. A piece that does not fit is
// written at once, together with the buffered bytes.
const outSize = 4 << 10

// outs pools the write buffers. A job holds a buffer only from its response header on.
var outs = sync.Pool{New: func() any { return new([outSize]byte) }}

// response is the http.ResponseWriter of a connection, for one request at a time. Like net/http, it adds
// a Date to a head without one. Unlike net/http, it adds no Content-Type.
type response struct {
	conn   *conn
	header http.Header

	received  []http1.Field // header fields of the request
	memory    int64         // of the request's head, in bytes
	head      bool          // the request is a HEAD
	old       bool          // the request is of HTTP/1.0
	preserved *http1.Head   // gives the next head its order and case; can be nil

	wrote    bool  // the head is written
	bodyless bool  // the status allows no body
	chunked  bool  // the body is sent in chunks
	length   int64 // declared length of the body, or -1
	sent     int64 // number of body bytes written
	close    bool  // the connection ends after the response
	err      error // the first error of a write; later writes return it

	out  []byte // buffered bytes; its array is room
	room *[outSize]byte
}

// begin resets the response for another request. WriteHeader and forget reset the other fields.
func (w *response) begin() {
	w.wrote, w.length, w.sent = false, -1, 0
}

// fewFields is the size of the largest header whose map is used again: an empty map keeps its memory.
const fewFields = 32

// forget drops what an idle connection would keep in memory: the last request and its response.
func (w *response) forget() {
	if len(w.header) > fewFields {
		w.header = nil
	}
	clear(w.header)
	w.received, w.preserved = nil, nil
}

// Header returns the header that WriteHeader writes, and after that the trailer.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// Write writes a piece of the body.
func (w *response) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, w.err
	case w.bodyless:
		return 0, http.ErrBodyNotAllowed
	case w.length >= 0 && w.sent+int64(len(p)) > w.length:
		w.close = true
		return 0, http.ErrContentLength
	}
	w.sent += int64(len(p))
	var end []byte
	if w.chunked {
		w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
		w.out = append(w.out, "\r\n"...)
		end = chunkEnd
	}
	if len(w.out)+len(p)+len(end) <= outSize {
		w.out = append(append(w.out, p...), end...)
		return len(p), w.err
	}
	if w.err == nil {
		w.err = w.conn.WriteBuffers(net.Buffers{w.out, p, end})
	}
	w.out = w.room[:0]
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

var chunkEnd = []byte("\r\n")

// FlushError sends the buffered bytes.
func (w *response) FlushError() error {
	if !w.wrote && len(w.out) == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if len(w.out) > 0 {
		if w.err == nil {
			_, w.err = w.conn.Write(w.out)
		}
		w.out = w.room[:0]
	}
	return w.err
}

// SetWriteDeadline sets the deadline of the writes that follow, also for later responses.
func (w *response) SetWriteDeadline(at time.Time) error { return w.conn.SetWriteDeadline(at) }

// SetReadDeadline sets the deadline of the current read of the body and of later reads.
func (w *response) SetReadDeadline(at time.Time) error {
	c := w.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted = at; c.state == reading {
		return c.SetReadDeadline(at)
	}
	return nil
}

// finish ends the response and sends the rest of it.
func (w *response) finish(unread bool) error {
	w.close = w.close || unread
	if !w.wrote {
		if len(w.header["Content-Length"]) == 0 {
			w.Header()["Content-Length"] = []string{"0"}
		}
		w.WriteHeader(http.StatusOK)
	}
	if w.chunked {
		w.out = append(w.out, "0\r\n"...)
		w.trailers()
		w.out = append(w.out, "\r\n"...)
	}
	if w.length > w.sent && !w.bodyless {
		w.close = true
	}
	err := w.FlushError()
	w.abandon()
	return err
}

// abandon returns the buffer to the pool.
func (w *response) abandon() {
	if w.room != nil {
		outs.Put(w.room)
		w.room, w.out = nil, nil
	}
}
