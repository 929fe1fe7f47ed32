package submitterserver

import (
	"errors"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// outSize is how many bytes of an answer are gathered before they are written. A
// piece that does not fit is written together with what was gathered.
const outSize = 4 << 10

// outs are buffers for answers. A job has one from the head of its answer on.
var outs = sync.Pool{New: func() any { return new([outSize]byte) }}

// response is the http.ResponseWriter of one request at a time. It adds a Date to
// a head that does not have one, as net/http does, but no Content-Type.
type response struct {
	conn   *conn
	header http.Header

	wrote    bool  // the head is written
	bodyless bool  // the status allows no body
	chunked  bool  // the body is sent in chunks
	length   int64 // of the body as declared; -1 is not
	sent     int64 // bytes of the body
	close    bool  // the connection ends after the answer
	err      error // of a write; it stands for all later ones

	out   []byte // what was not sent yet
	room  *[outSize]byte
	parts [3][]byte
	bufs  net.Buffers

	writeBy time.Time // the handler's deadline
	armed   time.Time // the one that the connection has; it may be earlier
}

// begin makes the response that of another request.
func (w *response) begin() {
	if w.header == nil {
		w.header = make(http.Header)
	}
	clear(w.header)
	w.wrote, w.bodyless, w.chunked, w.close = false, false, false, false
	w.length, w.sent, w.writeBy = -1, 0, time.Time{}
}

// Header is what WriteHeader writes, and afterwards the trailers.
func (w *response) Header() http.Header { return w.header }

// WriteHeader writes the head. An interim one (1xx) is sent at once.
func (w *response) WriteHeader(status int) {
	if w.wrote {
		return
	}
	if w.room == nil {
		room, ok := outs.Get().(*[outSize]byte)
		if !ok {
			panic("BUG: submitterserver: the pool of buffers holds something else")
		}
		w.room, w.out = room, room[:0]
	}
	w.status(status)
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.fields(true)
		w.out = append(w.out, "\r\n"...)
		_ = w.FlushError() // the error stands for all later writes
		return
	}
	w.wrote = true
	w.bodyless = status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
	w.frame(status)
	w.fields(w.bodyless || w.length < 0)
	w.out = append(w.out, "\r\n"...)
}

func (w *response) status(status int) {
	w.out = append(w.out, "HTTP/1.1 "...)
	w.out = strconv.AppendInt(w.out, int64(status), 10)
	w.out = append(w.out, ' ')
	if text := http.StatusText(status); text != "" {
		w.out = append(w.out, text...)
	} else {
		w.out = append(w.out, "status code "...)
		w.out = strconv.AppendInt(w.out, int64(status), 10)
	}
	w.out = append(w.out, "\r\n"...)
}

// frame writes the headers that are the server's.
func (w *response) frame(status int) {
	if status == http.StatusNotModified {
		delete(w.header, "Content-Type")
	}
	if declared := w.header["Content-Length"]; !w.bodyless && len(declared) > 0 && len(w.header["Transfer-Encoding"]) == 0 {
		if n, err := strconv.ParseInt(declared[0], 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
	if w.chunked = !w.bodyless && w.length < 0; w.chunked {
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
	}
	w.close = w.close || w.header.Get("Connection") == "close" || w.conn.mustEnd()
	if w.close {
		w.out = append(w.out, "Connection: close\r\n"...)
	}
	if _, told := w.header["Date"]; !told {
		w.out = append(w.out, "Date: "...)
		w.out = time.Now().UTC().AppendFormat(w.out, http.TimeFormat)
		w.out = append(w.out, "\r\n"...)
	}
}

// fields writes the handler's headers, and those that frame the body unless they are left out.
func (w *response) fields(unframed bool) {
	for name, values := range w.header {
		switch {
		case name == "Connection", name == "Transfer-Encoding", name == "Content-Length" && unframed,
			strings.HasPrefix(name, http.TrailerPrefix):
			continue
		}
		w.field(name, values)
	}
}

func (w *response) field(name string, values []string) {
	if !httpguts.ValidHeaderFieldName(name) {
		return
	}
	for _, v := range values {
		if !httpguts.ValidHeaderFieldValue(v) {
			v = oneLine.Replace(v)
		}
		w.out = append(w.out, name...)
		w.out = append(w.out, ": "...)
		w.out = append(w.out, textproto.TrimString(v)...)
		w.out = append(w.out, "\r\n"...)
	}
}

// oneLine keeps a value from becoming two headers.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

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
	if w.chunked {
		w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
		w.out = append(w.out, "\r\n"...)
	}
	const end = len("\r\n")
	if len(w.out)+len(p)+end <= outSize {
		w.out = append(w.out, p...)
		if w.chunked {
			w.out = append(w.out, "\r\n"...)
		}
		return len(p), w.err
	}
	w.parts = [3][]byte{w.out, p, nil}
	w.bufs = w.parts[:2]
	if w.chunked {
		w.parts[2] = chunkEnd
		w.bufs = w.parts[:3]
	}
	if err := w.send(); err != nil {
		return 0, err
	}
	return len(p), nil
}

var chunkEnd = []byte("\r\n")

// FlushError sends what was written.
func (w *response) FlushError() error {
	if !w.wrote && len(w.out) == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if len(w.out) == 0 {
		return w.err
	}
	w.parts[0] = w.out
	w.bufs = w.parts[:1]
	return w.send()
}

// send sends bufs, within the handler's deadline. The connection may have an
// earlier one, of another piece: it is set again when it has passed.
func (w *response) send() error {
	w.out = w.room[:0]
	if w.err != nil {
		return w.err
	}
	if w.writeBy.IsZero() != w.armed.IsZero() || w.armed.After(w.writeBy) {
		w.arm()
	}
	for {
		err := w.write()
		if errors.Is(err, os.ErrDeadlineExceeded) && w.armed.Before(w.writeBy) {
			w.arm()
			continue
		}
		w.parts = [3][]byte{}
		w.err = err
		return err
	}
}

// write writes bufs, as far as they go.
func (w *response) write() error {
	to := w.conn.Conn.Conn
	if len(w.bufs) > 1 {
		_, err := w.bufs.WriteTo(to)
		return err
	}
	n, err := to.Write(w.bufs[0])
	w.bufs[0] = w.bufs[0][n:]
	return err
}

func (w *response) arm() {
	_ = w.conn.SetWriteDeadline(w.writeBy) // fails only on a closed connection, as the write will
	w.armed = w.writeBy
}

// SetWriteDeadline bounds the writes that follow.
func (w *response) SetWriteDeadline(at time.Time) error {
	w.writeBy = at
	return nil
}

// SetReadDeadline bounds the reads of the body that follow.
func (w *response) SetReadDeadline(at time.Time) error {
	w.conn.wantReadDeadline(at)
	return nil
}

// EnableFullDuplex does nothing: the body may always be read while the answer is written.
func (w *response) EnableFullDuplex() error { return nil }

// finish ends the answer, and sends what is left of it.
func (w *response) finish(unread bool) error {
	w.close = w.close || unread
	if !w.wrote {
		if len(w.header["Content-Length"]) == 0 {
			w.header["Content-Length"] = []string{"0"}
		}
		w.WriteHeader(http.StatusOK)
	}
	if w.chunked {
		w.out = append(w.out, "0\r\n"...)
		w.trailers()
		w.out = append(w.out, "\r\n"...)
	}
	if w.length > w.sent {
		w.close = true
	}
	err := w.FlushError()
	w.abandon()
	return err
}

// trailers writes what was announced, and what bears the prefix of trailers.
func (w *response) trailers() {
	for _, list := range w.header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(textproto.TrimString(name)); httpguts.ValidTrailerHeader(name) {
				w.field(name, w.header[name])
			}
		}
	}
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			w.field(name, values)
		}
	}
}

// abandon gives the buffer back.
func (w *response) abandon() {
	if w.room != nil {
		outs.Put(w.room)
		w.room, w.out = nil, nil
	}
}
