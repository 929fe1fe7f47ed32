package report

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/httpclient"
)

const (
	maxHeaderBytes = 64 << 10
	maxDrained     = 4 << 10 // bytes of an error response that are read so that its connection can be reused
)

// newClient returns a client that connects to http URLs with dial. All upstreams have http URLs, also those that
// dial connects to with TLS.
func newClient(interval time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	dialHost := func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, ok := strings.CutSuffix(address, socketHost+":80"); ok {
			if socket, err := hex.DecodeString(host); err == nil {
				address = string(socket)
			}
		}
		return dial(ctx, network, address)
	}
	return httpclient.New(&http.Transport{
		DialContext:            dialHost,
		MaxIdleConnsPerHost:    8, // probes run at the same time
		IdleConnTimeout:        3 * interval,
		MaxResponseHeaderBytes: maxHeaderBytes,
	})
}

type request struct {
	url, accept string
	etag        string        // for If-None-Match; "" sends none
	max         int64         // maximum length of the response in bytes, decompressed
	timeout     time.Duration // until the last byte of the response
}

type response struct {
	// at is midway between the request and the response headers: the best estimate
	// of when the upstream computed its report.
	at     time.Time
	header http.Header
	body   io.Reader // decompressed, bounded
}

// statusError is a response with a status other than 200.
type statusError struct {
	code     int
	location string // target of a redirect that was not followed
}

func (e *statusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("status %d %s", e.code, http.StatusText(e.code)))
	if e.location != "" {
		text += fmt.Sprintf(", a redirect to %q, which is not followed", e.location)
	}
	return text
}

// Is makes a 404 match fs.ErrNotExist: the upstream has no such page.
func (e *statusError) Is(target error) bool {
	return target == fs.ErrNotExist && e.code == http.StatusNotFound
}

// statusOf returns the response status in an error, or 0.
func statusOf(err error) int {
	if status := (*statusError)(nil); errors.As(err, &status) {
		return status.code
	}
	return 0
}

// unanswered is the error of a request without a response.
type unanswered struct{ error }

// Is makes it match health.ErrNoResponse, and health.ErrRefused if nothing listens at the address.
func (e unanswered) Is(target error) bool {
	return target == health.ErrNoResponse ||
		target == health.ErrRefused && (errors.Is(e.error, syscall.ECONNREFUSED) || errors.Is(e.error, syscall.ENOENT)) // ENOENT: the Unix socket does not exist
}

func (e unanswered) Unwrap() error { return e.error }

// get sends the request and calls read with a 200 response, which is limited in size and time. Any other
// status is a statusError.
func get(ctx context.Context, client *http.Client, r request, read func(response) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var resolving atomic.Pointer[string] // the name; nil is none
	err := exchange(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) { resolving.Store(&i.Host) },
		DNSDone:  func(httptrace.DNSDoneInfo) { resolving.Store(nil) },
	}), client, r, read)
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		late := fmt.Sprintf("no complete response within %v", r.timeout)
		if name := resolving.Load(); name != nil { // the client returns before its dial does, without the error of the resolver
			return unanswered{&net.DNSError{Err: late, Name: *name, IsTimeout: true}}
		}
		return unanswered{errors.New(late)}
	}
	var wrapped *url.Error // its text repeats the address
	if errors.As(err, &wrapped) {
		return unanswered{wrapped.Err}
	}
	return err
}

func newRequest(ctx context.Context, method, url string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(r.URL.Host, socketHost) {
		r.Host = "localhost"
	}
	r.Header.Set("User-Agent", "pilotfish")
	return r, nil
}

func exchange(ctx context.Context, client *http.Client, r request, read func(response) error) error {
	req, err := newRequest(ctx, http.MethodGet, r.url)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", r.accept)
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}

	asked := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	at := asked.Add(time.Since(asked) / 2)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		return &statusError{resp.StatusCode, resp.Header.Get("Location")}
	}

	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fmt.Errorf("unexpected content encoding %q", encoding)
	}
	left := r.max
	body := &guarded{from: resp.Body, check: func(read []byte) error {
		if left -= int64(len(read)); left < 0 {
			return fmt.Errorf("longer than %d bytes", r.max)
		}
		return nil
	}}
	if err := read(response{at: at, header: resp.Header, body: body}); err != nil {
		return cmp.Or(body.broke, err)
	}
	return nil
}

// guarded is a body that calls check with everything that is read, and fails with its error. It
// keeps the error, because parsers wrap the errors of their readers.
type guarded struct {
	from  io.Reader
	check func(read []byte) error
	broke error // nil if the end was reached
}

func (g *guarded) Read(into []byte) (int, error) {
	n, err := g.from.Read(into)
	if tooMuch := g.check(into[:n]); tooMuch != nil {
		n, err = 0, tooMuch
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("truncated")
	}
	if !errors.Is(err, io.EOF) {
		g.broke = err
	}
	return n, err
}
