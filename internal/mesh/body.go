package mesh

import (
	"fmt"
	"io"
	"slices"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/mesh/h2"
	"example.org/pilotfish/internal/record"
)

// body is a request's body: what was received before an upstream was claimed, and a reader of the rest.
type body struct {
	// kept is the kept part of the body of a duplex stream. It is nil in the other modes, in which Envoy keeps the
	// body.
	kept *intake.Body
	// pieces reads the rest of the body from the stream.
	pieces *pieces
}

// bytes returns the number of kept bytes.
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

// read reads the job's facts from the headers and the body.
func (x *exchange) read() (b body, err error) {
	cfg, first, length := &x.f.cfg, x.first, x.first.length()
	switch first.requestMode {
	case bufferedBody, partialBody, duplexBody:
	case noBody:
		if !cfg.Reader.ReadsBody() {
			break
		}
		fallthrough
	default:
		return b, fmt.Errorf("%w: request_body_mode is %s; set BUFFERED, BUFFERED_PARTIAL, or FULL_DUPLEX_STREAMED with request_trailer_mode SEND, or NONE where no key of the section job is in the body",
			record.ErrMode, first.requestMode)
	}
	if m := first.responseMode; m != noBody && m != duplexBody {
		return b, fmt.Errorf("%w: response_body_mode is %s; set NONE or FULL_DUPLEX_STREAMED, with response_trailer_mode SEND", record.ErrMode, m)
	}
	x.book.Body(length, true)
	switch {
	case length > cfg.MaxBody:
		return b, fmt.Errorf("%w: %d bytes declared, %d allowed", intake.ErrTooLarge, length, cfg.MaxBody)
	case first.end, first.requestMode == noBody:
		return b, x.describe(nil, true)
	case first.requestMode == duplexBody:
		return x.readPieces(length)
	}
	return b, x.readMessage(length)
}

// describe reads the job's members. A long body, and the tokens of a prompt, which an upstream is asked for, must not
// delay other streams.
func (x *exchange) describe(body []byte, whole bool) error {
	if len(body) > maxPiece || x.f.cfg.Prompt != nil {
		x.ctx.leave()
	}
	return x.book.Describe(body, whole)
}

// readMessage reads a body that Envoy has buffered, or its first bytes. Envoy keeps it, so a waiting job needs no memory
// for it here.
func (x *exchange) readMessage(length int64) error {
	if err := x.send(proceed(x.stream.message(), requestHeadersReply, nil)); err != nil {
		return err
	}
	m, err := x.receive()
	if err != nil {
		return err
	}
	if m.kind != requestBody {
		return fmt.Errorf("%w: a message of another kind arrived instead of the request's body", errLeft)
	}
	n := int64(len(m.body))
	whole := m.end || n == length || x.first.requestMode == bufferedBody // trailers can follow a whole body
	if whole {
		x.book.Body(n, true)
	}
	if limit := x.f.cfg.MaxBody; n > limit {
		return fmt.Errorf("%w: %d bytes, %d allowed", intake.ErrTooLarge, n, limit)
	}
	return x.describe(m.body, whole)
}

// readPieces reads a body that is sent in pieces, until its end or until the budget is exhausted.
func (x *exchange) readPieces(length int64) (b body, err error) {
	b.pieces = &pieces{receive: x.receive}
	b.kept, err = intake.ReadBody(b.pieces, length, x.f.cfg.MaxBody, x.f.cfg.Budget)
	if err != nil {
		return body{}, err
	}
	x.book.Body(b.kept.Len(), b.kept.Whole())
	if !b.kept.Whole() { // received data is not read while the job waits, so count it
		err = x.stream.hold(h2.StreamWindow)
	}
	if err == nil {
		err = x.describe(b.kept.Bytes(), b.kept.Whole())
	}
	if err != nil {
		b.release()
		return body{}, err
	}
	return b, nil
}

// forward sends m, the reply with the upstreams, and the received part of the body of a duplex stream.
func (x *exchange) forward(b body, m []byte) error {
	if err := x.send(m); err != nil {
		return err
	}
	all := slices.Collect(slices.Chunk(b.kept.Bytes(), maxPiece))
	if left := b.pieces.left; len(left) > 0 || len(all) == 0 {
		all = append(all, left)
	}
	for i, one := range all {
		last := i == len(all)-1 && b.pieces.ended && !b.pieces.trailers
		if err := x.send(piece(x.stream.message(), requestBodyReply, one, last)); err != nil {
			return err
		}
	}
	if b.pieces.trailers {
		return x.send(trailers(x.stream.message(), requestTrailersReply))
	}
	return nil
}

// pieces reads a body from Envoy's messages.
type pieces struct {
	receive  func() (*message, error)
	bytes    int64  // received bytes
	left     []byte // of the last piece, valid until the next receive
	ended    bool   // no piece follows
	trailers bool   // the request's trailers were received and need a reply
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.left) == 0 {
		if p.ended {
			return 0, io.EOF
		}
		m, err := p.receive()
		if err != nil {
			return 0, err
		}
		switch m.kind {
		case requestBody:
			p.left, p.ended = m.body, m.end
			p.bytes += int64(len(m.body))
		case requestTrailers:
			p.ended, p.trailers = true, true
		default:
			return 0, fmt.Errorf("%w: a message of another kind arrived before the end of the request's body", errLeft)
		}
	}
	n := copy(into, p.left)
	p.left = p.left[n:]
	return n, nil
}
