package mesh

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// request is the head of a request, and how Envoy shows the rest.
type request struct {
	method string
	path   string // without a query
	header http.Header
	empty  bool // no body follows
	// subset is the upstreams that it may go to; nil is all.
	subset []string

	body, responseBody modes.ProcessingMode_BodySendMode
}

// requestOf reads the first message of a stream. A data plane that does not tell
// its modes uses those of the Endpoint Picker Protocol.
func requestOf(first *ext.ProcessingRequest, headers *ext.HttpHeaders) request {
	pseudo, header := split(headers.GetHeaders())
	path, _, _ := strings.Cut(pseudo[":path"], "?")
	r := request{
		method: pseudo[":method"], path: path, header: header, empty: headers.GetEndOfStream(), subset: subset(first),
		body: modes.ProcessingMode_FULL_DUPLEX_STREAMED, responseBody: modes.ProcessingMode_FULL_DUPLEX_STREAMED,
	}
	if c := first.GetProtocolConfig(); c != nil {
		r.body, r.responseBody = c.GetRequestBodyMode(), c.GetResponseBodyMode()
	}
	return r
}

// buffered says whether Envoy shows the whole body at once.
func (r request) buffered() bool { return r.body == modes.ProcessingMode_BUFFERED }

// length is the length of the body as declared, -1 if it is not.
func (r request) length() int64 {
	if r.empty {
		return 0
	}
	n, err := strconv.ParseInt(r.header.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// split parts the pseudo-headers of HTTP/2 from the headers.
func split(m *core.HeaderMap) (pseudo map[string]string, header http.Header) {
	pseudo, header = map[string]string{}, http.Header{}
	for _, h := range m.GetHeaders() {
		value := h.GetValue()
		if raw := h.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		if strings.HasPrefix(h.GetKey(), ":") {
			pseudo[h.GetKey()] = value
			continue
		}
		name := textproto.CanonicalMIMEHeaderKey(h.GetKey())
		header[name] = append(header[name], value)
	}
	return pseudo, header
}
