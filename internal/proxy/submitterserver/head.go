package submitterserver

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// WriteHeader writes the head. An interim one (1xx) is sent at once.
func (w *response) WriteHeader(status int) {
	if w.wrote {
		return
	}
	if w.room == nil {
		w.room = outs.Get().(*[outSize]byte)
		w.out = w.room[:0]
	}
	w.status(status)
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.fields(true)
		w.out = append(w.out, "\r\n"...)
		_ = w.FlushError() // the error stands for all later writes
		w.abandon()        // the answer itself may take long
		return
	}
	w.wrote = true
	w.bodyless = status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
	w.frame(status)
	w.fields(w.bodyless || w.length < 0)
	w.out = append(w.out, "\r\n"...)
}

func (w *response) status(status int) {
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	w.out = append(w.out, "HTTP/1.1 "...)
	w.out = strconv.AppendInt(w.out, int64(status), 10)
	w.out = append(w.out, ' ')
	w.out = append(w.out, text...)
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

// trailers writes what bears the prefix of trailers, announced or not.
func (w *response) trailers() {
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			w.field(name, values)
		}
	}
}
