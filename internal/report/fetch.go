package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	maxDrained     = 4 << 10 // of a refusal's body, so that its connection can serve again
)

// fetcher gets bounded answers within a bounded time.
type fetcher struct {
	client  *http.Client
	timeout time.Duration
}

func newFetcher(c Config) fetcher {
	carrier := c.Transport
	if carrier == nil {
		carrier = &http.Transport{
			DialContext:            (&net.Dialer{Timeout: c.Timeout}).DialContext,
			DisableCompression:     true, // done here, where it can be bounded
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        3 * c.Interval,
			MaxResponseHeaderBytes: maxHeaderBytes,
		}
	}
	return fetcher{
		timeout: c.Timeout,
		client: &http.Client{
			Transport: carrier,
			// An upstream speaks for itself alone: a redirect is a status like any other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

type request struct {
	url, accept string
	etag        string // "" asks for the answer even if it is as before
	max         int64  // bytes
}

type answer struct {
	// at is midway between the request and the response headers, the best
	// guess of when the upstream looked at itself.
	at     time.Time
	asked  time.Time // when the request began
	header http.Header
	body   io.Reader // decompressed, bounded
}

// statusError is an answer with a status other than 200.
type statusError int

func (e statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e))))
}

// get sends the request and has read make sense of a 200. The timeout covers
// all of it. Another status is a statusError.
func (f fetcher) get(ctx context.Context, r request, read func(answer) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := f.exchange(ctx, r, read)
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no whole answer within %v", f.timeout)
	}
	var wrapped *url.Error // which repeats the address
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func (f fetcher) exchange(ctx context.Context, r request, read func(answer) error) error {
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

	start := time.Now()
	resp, err := f.client.Do(req)
	if err != nil {
		return err
	}
	at := start.Add(time.Since(start) / 2)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		return statusError(resp.StatusCode)
	}

	body, err := openBody(resp, r.max)
	if err != nil {
		return err
	}
	if err := read(answer{at: at, asked: start, header: resp.Header, body: body}); err != nil {
		return body.cause(err)
	}
	return nil
}
