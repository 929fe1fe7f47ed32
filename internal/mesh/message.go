package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/settings"
)

// maxHeaderLines is the maximum number of headers in a message. A header of 4 bytes takes a hundred bytes when decoded.
const maxHeaderLines = 1000

// kind is the kind of a message from Envoy. The numbers are those of the fields of
// envoy.service.ext_proc.v3.ProcessingRequest.
type kind protowire.Number

const (
	requestHeaders   kind = 2
	responseHeaders  kind = 3
	requestBody      kind = 4
	responseBody     kind = 5
	requestTrailers  kind = 6
	responseTrailers kind = 7
)

// bodyMode is how Envoy sends a body to pilotfish: envoy.extensions.filters.http.ext_proc.v3.ProcessingMode.BodySendMode.
type bodyMode uint64

const (
	noBody       bodyMode = 0
	bufferedBody bodyMode = 2 // whole, in one message
	partialBody  bodyMode = 3 // in one message, which Envoy's buffer limit can truncate
	duplexBody   bodyMode = 4 // in pieces, which pilotfish sends back
)

func (m bodyMode) String() string {
	names := []string{"NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED", "GRPC"}
	if m < bodyMode(len(names)) {
		return names[m]
	}
	return fmt.Sprintf("%d", uint64(m))
}

// message is a decoded message from Envoy, with only the fields that pilotfish uses.
type message struct {
	kind kind // 0 for a kind that pilotfish does not know

	// Of headers and trailers.
	method, path, status string // pseudo-headers
	header               http.Header

	body []byte // aliases the received bytes
	end  bool   // the message ends its request or response

	observability bool // Envoy does not wait for replies
	// How Envoy sends bodies. The default is the mode of the Endpoint Picker Protocol.
	requestMode, responseMode bodyMode

	hasSubset bool     // the upstreams are limited to subset, which may be empty
	subset    []string // addresses
	served    string   // the address of the upstream that responded
	details   string   // response.code_details: how Envoy got the response
}

var (
	errWire    = errors.New("malformed protobuf message")
	errHeaders = fmt.Errorf("more than %d headers in a message", maxHeaderLines)
)

// decode decodes a ProcessingRequest. It allocates little more than the size of the headers. Generated code would
// allocate up to fifty times the size of the message.
func decode(b []byte) (m *message, err error) {
	m = &message{requestMode: duplexBody, responseMode: duplexBody}
	err = fields(b, func(n protowire.Number, v uint64, inner []byte) error {
		switch kind(n) {
		case requestHeaders, responseHeaders, requestTrailers, responseTrailers:
			m.kind = kind(n)
			return m.headers(inner)
		case requestBody, responseBody:
			m.kind = kind(n)
			return m.bodyPart(inner)
		}
		switch n {
		case 8: // metadata_context, a core.Metadata: filter_metadata
			return fields(inner, func(n protowire.Number, _ uint64, entry []byte) error {
				if n != 1 {
					return nil
				}
				return m.structs(entry)
			})
		case 9: // attributes
			return m.structs(inner)
		case 10:
			m.observability = v != 0
		case 11: // protocol_config
			m.requestMode, m.responseMode = noBody, noBody
			return fields(inner, func(n protowire.Number, v uint64, _ []byte) error {
				switch n {
				case 1:
					m.requestMode = bodyMode(v)
				case 2:
					m.responseMode = bodyMode(v)
				}
				return nil
			})
		}
		return nil
	})
	return m, err
}

// fields calls use for each field of a protobuf message. v is the value of a varint; inner is the value of a
// string, of bytes or of an embedded message.
func fields(b []byte, use func(n protowire.Number, v uint64, inner []byte) error) error {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return errWire
		}
		var v uint64
		var inner []byte
		b = b[size:]
		switch typ {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			inner, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(n, typ, b)
		}
		if size < 0 {
			return errWire
		}
		b = b[size:]
		if err := use(n, v, inner); err != nil {
			return err
		}
	}
	return nil
}

// headers decodes an HttpHeaders or HttpTrailers.
func (m *message) headers(b []byte) error {
	m.header = http.Header{}
	return fields(b, func(n protowire.Number, v uint64, inner []byte) error {
		switch n {
		case 1:
			return m.headerMap(inner)
		case 3: // end_of_stream
			m.end = v != 0
		}
		return nil
	})
}

// headerMap decodes a core.HeaderMap. The headers share the memory of its text.
func (m *message) headerMap(b []byte) error {
	text, lines := string(b), 0
	if err := fields(b, func(n protowire.Number, _ uint64, _ []byte) error {
		if n == 1 {
			lines++
		}
		return nil
	}); err != nil || lines > maxHeaderLines {
		return cmp.Or(err, errHeaders)
	}
	values := make([]string, 0, lines)
	return fields(b, func(n protowire.Number, _ uint64, line []byte) error {
		if n != 1 {
			return nil
		}
		var key, value string
		err := fields(line, func(n protowire.Number, _ uint64, inner []byte) error {
			if inner == nil { // not a text
				return nil
			}
			at := cap(b) - cap(inner)
			switch of := text[at : at+len(inner)]; {
			case n == 1:
				key = of
			case n == 2 && value == "", n == 3 && of != "": // value, raw_value
				value = of
			}
			return nil
		})
		values = append(values, value)
		m.setHeader(key, values[len(values)-1:])
		return err
	})
}

// setHeader sets a header or the field of a pseudo-header. values[0] is its value.
func (m *message) setHeader(key string, values []string) {
	switch key {
	case ":method":
		m.method = settings.Cut(values[0], settings.MaxText)
	case ":path":
		m.path, _, _ = strings.Cut(values[0], "?")
	case ":status":
		m.status = settings.Cut(values[0], settings.MaxText)
	default:
		if key == "" || key[0] == ':' {
			return
		}
		name := textproto.CanonicalMIMEHeaderKey(key)
		if before := m.header[name]; before != nil {
			values = append(before, values[0])
		}
		m.header[name] = values[:len(values):len(values)]
	}
}

// bodyPart decodes an HttpBody.
func (m *message) bodyPart(b []byte) error {
	return fields(b, func(n protowire.Number, v uint64, inner []byte) error {
		switch n {
		case 1:
			m.body = inner
		case 2:
			m.end = v != 0
		}
		return nil
	})
}

// stored is a text as it is stored with a job.
func stored(text []byte) string { return string(text[:min(len(text), settings.MaxText)]) }

// length returns the declared length of a request's body, or -1.
func (m *message) length() int64 {
	if m.end {
		return 0
	}
	n, err := strconv.ParseInt(m.header.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
