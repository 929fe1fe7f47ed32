package mesh

import (
	"fmt"
	"io"

	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

// body is what was read of a request before it was placed.
type body struct {
	// kept is the body as far as the budget allows. It is nil where Envoy keeps
	// the body, and where there is none.
	kept *intake.Body
	// pieces is where the rest comes from.
	pieces *pieces
}

// bytes is how many are kept.
func (b body) bytes() int64 {
	if b.kept == nil {
		return 0
	}
	return int64(len(b.kept.Bytes()))
}

func (b body) release() {
	if b.kept != nil {
		b.kept.Release()
	}
}

// read reads what the job says of itself.
func (x *exchange) read(r request) (b body, err error) {
	streamed := r.body == modes.ProcessingMode_FULL_DUPLEX_STREAMED
	switch {
	case !streamed && r.body != modes.ProcessingMode_BUFFERED:
		return b, fmt.Errorf("%w: request_body_mode is %s; set BUFFERED, or FULL_DUPLEX_STREAMED with request_trailer_mode SEND", record.ErrMode, r.body)
	case r.responseBody != modes.ProcessingMode_NONE && r.responseBody != modes.ProcessingMode_FULL_DUPLEX_STREAMED:
		return b, fmt.Errorf("%w: response_body_mode is %s; set NONE or FULL_DUPLEX_STREAMED, with response_trailer_mode SEND", record.ErrMode, r.responseBody)
	}
	x.book.Record.Body = r.length()
	switch {
	case r.length() > x.f.cfg.MaxBody:
		return b, fmt.Errorf("%w: %d bytes declared, %d allowed", intake.ErrTooLarge, r.length(), x.f.cfg.MaxBody)
	case r.empty:
		return b, x.book.Describe(nil, true)
	case streamed:
		return x.readStream(r)
	}
	return b, x.readWhole(r)
}

// readWhole reads a body that Envoy has buffered. Envoy keeps it, so that it
// costs nothing here while the job waits.
func (x *exchange) readWhole(r request) error {
	if err := x.send(goOn()); err != nil {
		return err
	}
	m, err := x.next()
	if err != nil {
		return err
	}
	if m.GetRequestBody() == nil {
		return fmt.Errorf("%w: it went on without the request's body", errLeft)
	}
	text := m.GetRequestBody().GetBody()
	x.book.Record.Body = int64(len(text))
	if most := x.f.cfg.MaxBody; x.book.Record.Body > most {
		return fmt.Errorf("%w: %d bytes, %d allowed", intake.ErrTooLarge, len(text), most)
	}
	return x.book.Describe(text, true)
}

// readStream reads a body that comes in pieces, whole or as far as the budget allows.
func (x *exchange) readStream(r request) (b body, err error) {
	b.pieces = &pieces{next: x.next}
	b.kept, err = intake.ReadBody(b.pieces, r.length(), x.f.cfg.MaxBody, x.f.cfg.Budget)
	if err != nil {
		return body{}, err
	}
	x.book.Record.Body, x.book.Record.Unkept = b.kept.Len(), !b.kept.Whole()
	if err := x.book.Describe(b.kept.Bytes(), b.kept.Whole()); err != nil {
		b.release()
		return body{}, err
	}
	return b, nil
}

// pieces reads a body out of Envoy's messages.
type pieces struct {
	next     func() (*ext.ProcessingRequest, error)
	left     []byte // of the last piece
	ended    bool   // no piece follows
	trailers bool   // the trailers have come, which want a reply
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.left) == 0 {
		if p.ended {
			return 0, io.EOF
		}
		m, err := p.next()
		if err != nil {
			return 0, err
		}
		switch {
		case m.GetRequestBody() != nil:
			p.left, p.ended = m.GetRequestBody().GetBody(), m.GetRequestBody().GetEndOfStream()
		case m.GetRequestTrailers() != nil:
			p.ended, p.trailers = true, true
		default:
			return 0, fmt.Errorf("%w: it went on before the request's end", errLeft)
		}
	}
	n := copy(into, p.left)
	p.left = p.left[n:]
	return n, nil
}
