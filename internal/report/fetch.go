package report

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.org/pilotfish/internal/pool"
)

const (
	maxHeaderBytes = 64 << 10
	maxDrained     = 4 << 10 // of a refusal's body, so that its connection can be used again
)

// client gets responses of bounded size within a bounded time.
type client struct {
	http    *http.Client
	timeout time.Duration
}

// newClient returns one that dials so where a URL begins with http; nil dials TCP.
// Upstreams are reached by such URLs alone, whatever dial makes of it.
func newClient(c *Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) client {
	if dial == nil {
		dial = (&net.Dialer{Timeout: c.Timeout}).DialContext
	}
	dialHost := func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, ok := strings.CutSuffix(address, socketHost+":80"); ok {
			if socket, err := hex.DecodeString(host); err == nil {
				address = string(socket)
			}
		}
		return dial(ctx, network, address)
	}
	transport := c.Transport
	if transport == nil {
		transport = &http.Transport{
			DialContext:            dialHost,
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        3 * c.Interval,
			MaxResponseHeaderBytes: maxHeaderBytes,
		}
	}
	return client{
		timeout: c.Timeout,
		http: &http.Client{
			Transport: transport,
			// An upstream speaks for itself alone: a redirect is a status like any other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

type request struct {
	url, accept string
	etag        string        // "" asks for the response even if it has not changed
	max         int64         // bytes of the response, decompressed
	timeout     time.Duration // of all of it; 0 is the client's
}

type response struct {
	asked time.Time // when the request began
	// at is midway between the request and the response headers: the best guess
	// of when the upstream took its figures.
	at     time.Time
	header http.Header
	body   io.Reader // decompressed, bounded
}

// statusError is a response with a status other than 200.
type statusError int

func (e statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e))))
}

// unanswered is a request without a response.
type unanswered struct{ error }

func (unanswered) Is(target error) bool { return target == pool.ErrNoResponse }

func (e unanswered) Unwrap() error { return e.error }

// get sends the request and calls read with a 200. Another status is a
// statusError.
func (c client) get(ctx context.Context, r request, read func(response) error) error {
	timeout := cmp.Or(r.timeout, c.timeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.exchange(ctx, r, read)
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return unanswered{fmt.Errorf("no complete response within %v", timeout)}
	}
	var wrapped *url.Error // repeats the address
	if errors.As(err, &wrapped) {
		return unanswered{wrapped.Err}
	}
	return err
}

func (c client) exchange(ctx context.Context, r request, read func(response) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return err
	}
	if strings.HasSuffix(req.URL.Host, socketHost) {
		req.Host = "localhost"
	}
	req.Header.Set("Accept", r.accept)
	req.Header.Set("User-Agent", "pilotfish")
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}

	asked := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	at := asked.Add(time.Since(asked) / 2)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		return statusError(resp.StatusCode)
	}

	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fmt.Errorf("content encoding %q was not asked for", encoding)
	}
	body := &bounded{from: http.MaxBytesReader(nil, resp.Body, r.max)}
	if err := read(response{asked: asked, at: at, header: resp.Header, body: body}); err != nil {
		return cmp.Or(body.broke, err)
	}
	return nil
}

// bounded is a body of bounded size. It remembers why it broke, because parsers wrap an
// error of their source in one of their own.
type bounded struct {
	from  io.Reader
	broke error // nil at the regular end
}

func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.from.Read(into)
	var long *http.MaxBytesError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.As(err, &long):
		err = fmt.Errorf("longer than %d bytes", long.Limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("cut short")
	}
	b.broke = err
	return n, err
}
