package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxReply bounds a reply of Consul or Kubernetes, in bytes; an instance takes 1 to 2 kB.
	maxReply = 32 << 20
	// maxValues bounds the brackets, names and values that are kept of a reply; an instance has about 30.
	maxValues = 100 * maxUpstreams
	// maxFailure bounds a reply that says why there is none, in bytes.
	maxFailure = 64 << 10
)

// bounded is a transport whose replies end in an error beyond maxReply, and which have
// only the members that are kept.
type bounded struct {
	next http.RoundTripper
	keep map[string]bool
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusOK:
		resp.Body = newPruned(http.MaxBytesReader(nil, resp.Body, maxReply), b.keep)
		resp.ContentLength = -1
	default:
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxFailure), resp.Body}
	}
	return resp, err
}

// pruned is JSON without the members that nobody reads. The clients' decoders make hundreds
// of bytes of each "{}": 32 MiB would become gigabytes.
type pruned struct {
	io.Closer
	keep   map[string]bool
	dec    *jsontext.Decoder
	enc    *jsontext.Encoder
	out    bytes.Buffer
	values int
	err    error
}

func newPruned(from io.ReadCloser, keep map[string]bool) *pruned {
	lenient := jsontext.AllowInvalidUTF8(true)
	p := &pruned{Closer: from, keep: keep, dec: jsontext.NewDecoder(from, lenient, jsontext.AllowDuplicateNames(true))}
	p.enc = jsontext.NewEncoder(&p.out, lenient, jsontext.AllowDuplicateNames(true))
	return p
}

func (p *pruned) Read(into []byte) (int, error) {
	for p.out.Len() == 0 && p.err == nil {
		p.err = p.next()
	}
	if p.out.Len() > 0 {
		return p.out.Read(into)
	}
	return 0, p.err
}

// next passes one value on, or the beginning or the end of one, or skips a member.
func (p *pruned) next() error {
	in, before := p.dec.StackIndex(p.dec.StackDepth())
	isName := in == '{' && before%2 == 0 && p.dec.PeekKind() == '"'
	token, err := p.dec.ReadToken()
	if err != nil {
		return plain(err)
	}
	if isName && !p.keep[token.String()] {
		return plain(p.dec.SkipValue())
	}
	if p.values++; p.values > maxValues {
		return fmt.Errorf("it has more than %d values", maxValues)
	}
	return p.enc.WriteToken(token)
}

// plain is an error without the decoder's words around it.
func plain(err error) error {
	var malformed *jsontext.SyntacticError
	var bound *http.MaxBytesError
	switch {
	case errors.As(err, &bound):
		return fmt.Errorf("it is longer than %d bytes", bound.Limit)
	case err == nil, errors.Is(err, io.EOF):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case !errors.As(err, &malformed) && errors.Unwrap(err) != nil:
		return errors.Unwrap(err)
	}
	return err
}

// members is a set of names.
func members(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}
