package mesh

import (
	"fmt"
	"io"
	"slices"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

// body is the part of a request's body that was received before an upstream was claimed.
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
	case bufferedBody, duplexBody:
	case noBody:
		if !cfg.Reader.ReadsBody() {
			break
		}
		fallthrough
	default:
		return b, fmt.Errorf("%w: request_body_mode is %s; set BUFFERED, or FULL_DUPLEX_STREAMED with request_trailer_mode SEND, or NONE where no key of the section job is in the body",
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
		return b, x.book.Describe(nil, true)
	case first.requestMode == duplexBody:
		return x.readPieces(length)
	}
	return b, x.readWhole()
}

// readWhole reads a body that Envoy has buffered. Envoy keeps it, so a waiting job needs no memory for it
// here.
func (x *exchange) readWhole() error {
	if err := x.send(proceed(x.stream.message(), requestHeadersReply, nil)); err != nil {
		return err
	}
	m, err := x.receive()
	if err != nil {
		return err
	}
	if m.kind != requestBody {
		return fmt.Errorf("%w: it continued without the request's body", errLeft)
	}
	x.book.Body(int64(len(m.body)), true)
	if limit := x.f.cfg.MaxBody; x.book.Record.Body > limit {
		return fmt.Errorf("%w: %d bytes, %d allowed", intake.ErrTooLarge, len(m.body), limit)
	}
	return x.book.Describe(m.body, true)
}

// readPieces reads a body that is sent in pieces, until its end or until the budget is exhausted.
func (x *exchange) readPieces(length int64) (b body, err error) {
	b.pieces = &pieces{receive: x.receive}
	b.kept, err = intake.ReadBody(b.pieces, length, x.f.cfg.MaxBody, x.f.cfg.Budget)
	if err != nil {
		return body{}, err
	}
	x.book.Body(b.kept.Len(), b.kept.Whole())
	if err := x.book.Describe(b.kept.Bytes(), b.kept.Whole()); err != nil {
		b.release()
		return body{}, err
	}
	return b, nil
}

// forward sends the received part of the body back to Envoy, after the reply m. It queues all messages except the last.
func (x *exchange) forward(b body, m []byte) error {
	all := slices.Collect(slices.Chunk(b.kept.Bytes(), maxPiece))
	if left := b.pieces.left; len(left) > 0 || len(all) == 0 {
		all = append(all, left)
	}
	for i, one := range all {
		if err := x.queue(m); err != nil {
			return err
		}
		last := i == len(all)-1 && b.pieces.ended && !b.pieces.trailers
		m = piece(x.stream.message(), requestBodyReply, one, last)
	}
	if b.pieces.trailers {
		if err := x.queue(m); err != nil {
			return err
		}
		m = trailers(x.stream.message(), requestTrailersReply)
	}
	return x.send(m)
}

// pieces reads a body from Envoy's messages.
type pieces struct {
	receive  func() (*message, error)
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
		case requestTrailers:
			p.ended, p.trailers = true, true
		default:
			return 0, fmt.Errorf("%w: it continued before the end of the request", errLeft)
		}
	}
	n := copy(into, p.left)
	p.left = p.left[n:]
	return n, nil
}
