package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

var (
	errFraming = &record.Refusal{
		Status: 400, Reason: "malformed-body",
		Title: "the body's framing is broken", Text: "malformed body",
	}
	errSlow = &record.Refusal{
		Status: 408, Reason: "slow-body",
		Title: "the body came too slowly", Text: "the body comes too slowly",
	}
)

// read reads the body whole, or as far as the budget allows, and what the job
// says of itself; and takes the job in. What it adds to the exchange does not
// change after it.
func (x *exchange) read() error {
	body, err := x.readBody()
	if err != nil {
		return err
	}
	x.body = body
	target, err := target(x.r)
	if err != nil {
		return err
	}
	d, err := readJob(x.r, body, x.p.cfg.Reader)
	x.record.Facts, x.record.Read, x.record.Unread = d.facts, d.reading, d.unread
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrMalformed, err)
	}
	x.outgoing = upstreamclient.Request{
		Method: x.r.Method, Target: target, Host: x.r.Host,
		Header: outgoingHeader(x.r, x.record.ID), Trailer: x.r.Trailer, // trailers follow a chunked body only
		Interim: x.interim,
	}
	if !body.Whole() {
		_ = x.rc.EnableFullDuplex() // HTTP/2 always is: an upstream may answer before the rest has come
	}
	f := &x.record.Facts
	x.job = x.p.cfg.Claimer.Begin(dispatch.Request{
		Project: f.Key, Priority: f.Priority, Arrived: x.record.Arrived, Bytes: int64(len(body.Bytes())),
		Queue: f.Queue, Evaluate: f.Evaluate, Stream: f.Stream,
	})
	return nil
}

// readBody reads the body from the submitter.
func (x *exchange) readBody() (*intake.Body, error) {
	var from io.Reader = x.r.Body
	if x.r.Body != http.NoBody {
		from = &pacedBody{r: x.r.Body, rc: x.rc, idle: x.p.cfg.BodyIdle}
	}
	body, err := intake.ReadBody(from, x.r.ContentLength, x.p.cfg.MaxBody, x.p.cfg.Budget)
	if err != nil {
		x.record.Body = x.r.ContentLength
		return nil, x.sendingFailed(err)
	}
	x.record.Body, x.record.Unkept = body.Len(), !body.Whole()
	return body, nil
}

// sendingFailed says why a submitter's body could not be read.
func (x *exchange) sendingFailed(err error) error {
	var broken *net.OpError
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", errSlow, err)
	case x.r.Context().Err() != nil, errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken):
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return fmt.Errorf("%w: %w", errFraming, err)
}

// described is what was read of what a job says of itself.
type described struct {
	facts   intake.Facts
	reading intake.Reading
	unread  string // why it is not all; "" if it is
}

func unread(format string, args ...any) (described, error) {
	return described{unread: fmt.Sprintf(format, args...)}, nil
}

// readJob reads what a job says of itself. A body that claims to be JSON and is no
// job is an error.
func readJob(r *http.Request, body *intake.Body, reader *intake.Reader) (d described, err error) {
	encoding, media := r.Header.Get("Content-Encoding"), mediaType(r.Header)
	isJSON := media == "" || media == "application/json" || strings.HasSuffix(media, "+json")
	switch {
	case r.Method != http.MethodPost:
		return unread("it is no POST")
	case body.Len() == 0:
		return unread("it has no body")
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return unread("its body is encoded: %.40q", encoding)
	case !isJSON && !reader.AnyType():
		return unread("job.read is json, and its Content-Type %.80q", media)
	case !isJSON && !bytes.HasPrefix(bytes.TrimLeft(body.Bytes(), " \t\r\n"), []byte("{")):
		return unread("its body does not begin with {, and its Content-Type is %.80q", media)
	}
	d.facts, d.reading, err = body.Facts(reader)
	switch {
	case err != nil && !isJSON:
		return unread("its Content-Type is %.80q, and its body no job: %v", media, err)
	case d.reading == intake.Partly:
		d.unread = "its body is not kept, and the beginning lacks the project or the priority"
	}
	return d, err
}

// mediaType is the Content-Type without parameters, in lower case.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// slowest is the rate, in bytes per second, below which a body is too slow.
// It is far below what any line offers, so that only those who mean to keep a
// connection busy meet it.
const slowest = 256

// pacedBody reads a submitter's body and gives up on one that hardly comes.
// Only time spent blocked counts, so that a slow upstream is not held against
// the submitter.
type pacedBody struct {
	r       io.Reader
	rc      *http.ResponseController
	idle    time.Duration
	got     int64
	blocked time.Duration
}

func (b *pacedBody) Read(p []byte) (int, error) {
	started := time.Now()
	allowed := b.idle + time.Duration(b.got)*(time.Second/slowest) - b.blocked
	_ = b.rc.SetReadDeadline(started.Add(allowed)) // without deadlines, a body is not paced
	n, err := b.r.Read(p)
	_ = b.rc.SetReadDeadline(time.Time{}) // one that passed between two reads would end an HTTP/2 stream
	b.got += int64(n)
	b.blocked += time.Since(started)
	return n, err
}
