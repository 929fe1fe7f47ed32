package report

import (
	"cmp"
	"compress/gzip"
	"context"
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

// dial connects to an address.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// newUpstreamClient returns one for upstreams. Their URLs begin with http, whatever
// Config.Dial makes of it.
func newUpstreamClient(c *Config) client {
	plain := c.Dial
	if plain == nil {
		plain = (&net.Dialer{Timeout: c.Timeout}).DialContext
	}
	return newClient(c, plain, nil)
}

// newServerClient returns one for a Prometheus server.
func newServerClient(c *Config) client {
	return newClient(c, (&net.Dialer{Timeout: c.Timeout}).DialContext, c.DialServer)
}

// newClient returns one that dials so for http, and so for https.
func newClient(c *Config, plain, secure dial) client {
	transport := c.Transport
	if transport == nil {
		transport = &http.Transport{
			DialContext:            plain,
			DialTLSContext:         secure,
			DisableCompression:     true, // openBody decompresses, and bounds it
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
	max         int64         // bytes of the response, compressed and not
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
	req.Header.Set("Accept", r.accept)
	req.Header.Set("Accept-Encoding", "gzip")
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

	body, err := openBody(resp, r.max)
	if err != nil {
		return err
	}
	if err := read(response{asked: asked, at: at, header: resp.Header, body: body}); err != nil {
		return body.cause(err)
	}
	return nil
}

// openBody returns the body of resp, decompressed. Both the bytes on the
// connection and the decompressed bytes are bounded by max.
func openBody(resp *http.Response, max int64) (*bounded, error) {
	raw := newBounded(resp.Body, max)
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return raw, nil
	case "gzip":
		unzipped, err := gzip.NewReader(raw)
		if err != nil {
			return nil, raw.cause(err)
		}
		return newBounded(unzipped, max), nil
	default:
		return nil, fmt.Errorf("content encoding %q was not asked for", encoding)
	}
}

// bounded reads at most max bytes; one more is an error. It remembers why it
// broke, because parsers wrap an error of their source in one of their own.
type bounded struct {
	from  io.Reader
	left  int64
	max   int64
	broke error // nil at the regular end
}

func newBounded(from io.Reader, max int64) *bounded {
	return &bounded{from: from, left: max, max: max}
}

func (b *bounded) Read(into []byte) (int, error) {
	if b.broke != nil {
		return 0, b.broke
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.from.Read(into)
	if int64(n) > b.left {
		n, err = int(b.left), fmt.Errorf("longer than %d bytes", b.max)
	}
	b.left -= int64(n)
	if errors.Is(err, io.EOF) {
		return n, err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("cut short")
	}
	b.broke = err
	return n, err
}

// cause returns why a parser failed with err: the source's reason, if it broke.
func (b *bounded) cause(err error) error {
	if b.broke != nil {
		return b.broke
	}
	return err
}
