package submitterserver

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"example.org/pilotfish/internal/proxy/http1"
)

// Received returns the header fields of the request, as received, and the memory of its head, in bytes.
func (w *response) Received() ([]http1.Field, int64) { return w.received, w.memory }

// SetHead replaces the header, and makes the next WriteHeader use the reason phrase, and the order and case of the fields, of
// a received header.
func (w *response) SetHead(received *http1.Head, header http.Header) {
	w.preserved, w.header = received, header
}

// WriteHeader writes the header. A 1xx response is sent at once.
func (w *response) WriteHeader(status int) {
	if w.wrote {
		return
	}
	if w.room == nil {
		w.room = outs.Get().(*[outSize]byte)
		w.out = w.room[:0]
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.append(status, noField("Content-Length"), noField("Transfer-Encoding"), noField("Connection"))
		_ = w.FlushError() // the error stands for all later writes
		w.abandon()        // the final response can be much later, and needs no buffer until then
		return
	}
	w.wrote = true
	w.bodyless = w.head || status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
	own := [4][2]string{noField("Transfer-Encoding"), noField("Connection")}
	if n, ok := w.declared(); ok && !w.bodyless {
		w.length = n
	}
	switch unframed := !w.bodyless && w.length < 0; {
	case unframed && w.old:
		w.close, w.chunked = true, false // the end of the connection ends the body
	case unframed:
		own[0][1], w.chunked = "chunked", true
	default:
		w.chunked = false
	}
	if w.close = w.close || w.header.Get("Connection") == "close" || w.conn.mustEnd(); w.close != w.old { // announced only if it differs from the version's default
		if own[1][1] = "close"; w.old {
			own[1][1] = "keep-alive"
		}
	}
	n := 2
	if !w.bodyless && w.length < 0 || status < 200 || status == http.StatusNoContent { // a Content-Length would be wrong or is not allowed (RFC 9110, 8.6)
		own[n], n = noField("Content-Length"), n+1
	}
	if _, there := w.header["Date"]; !there {
		own[n], n = [2]string{"Date", time.Now().UTC().Format(http.TimeFormat)}, n+1
	}
	w.append(status, own[:n]...)
}

// noField omits a field.
func noField(key string) [2]string { return [2]string{key, ""} }

// declared returns the Content-Length that the handler has set.
func (w *response) declared() (n int64, ok bool) {
	values := w.header["Content-Length"]
	if len(values) == 0 || len(w.header["Transfer-Encoding"]) > 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	return n, err == nil && n >= 0
}

// append appends a head to the write buffer.
func (w *response) append(status int, own ...[2]string) {
	reason, received := http.StatusText(status), []http1.Field(nil)
	if reason == "" {
		reason = "status code " + strconv.Itoa(status)
	}
	if w.preserved != nil {
		received = w.preserved.Fields
		if httpguts.ValidHeaderFieldValue(w.preserved.Reason) {
			reason = w.preserved.Reason
		}
		w.preserved = nil
	}
	version := "HTTP/1.1 "
	if w.old {
		version = "HTTP/1.0 "
	}
	w.out = append(w.out, version...)
	w.out = strconv.AppendInt(w.out, int64(status), 10)
	w.out = append(w.out, ' ')
	w.out = append(w.out, reason...)
	w.out = append(w.out, "\r\n"...)
	w.out, _ = http1.Append(w.out, w.header, received, own...) // invalid fields are omitted
	w.out = append(w.out, "\r\n"...)
}

// Hijack returns the connection, which the handler must close.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.err = http.ErrHijacked
	return w.conn.tcp, nil, nil
}

// trailers writes the fields with http.TrailerPrefix, announced or not.
func (w *response) trailers() {
	var sent http.Header
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			if sent == nil {
				sent = make(http.Header)
			}
			sent[name] = values
		}
	}
	w.out, _ = http1.Append(w.out, sent, nil) // invalid fields are omitted
}
