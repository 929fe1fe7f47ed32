package discovery

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Limits for a reply of Consul or Kubernetes. Objects and members are counted by '{' and ','. They are limited because
// a decoder allocates hundreds of bytes for each "{}", so 32 MiB of them would become gigabytes. An instance in
// Consul has 1 to 2 kB, about 15 objects and 80 members.
const (
	maxReply   = 32 << 20
	maxObjects = 40 * maxUpstreams
	maxMembers = 150 * maxUpstreams
	// maxFailure is the maximum length of an error response, in bytes.
	maxFailure = 64 << 10
)

// bounded is a transport that limits the size of responses; reading beyond the limit is an error.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusOK:
		resp.Body = &counted{ReadCloser: resp.Body}
	default:
		resp.Header.Del("Retry-After") // client-go would retry by itself, at once for 0; the pacer decides when to retry
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxFailure), resp.Body}
	}
	return resp, err
}

// counted is a response body whose Read fails once the body exceeds the bounds.
type counted struct {
	io.ReadCloser
	bytes, objects, members int
}

func (c *counted) Read(into []byte) (int, error) {
	n, err := c.ReadCloser.Read(into)
	c.bytes += n
	c.objects += bytes.Count(into[:n], []byte("{"))
	c.members += bytes.Count(into[:n], []byte(","))
	switch {
	case c.bytes > maxReply:
		return 0, fmt.Errorf("it is longer than %d bytes", maxReply)
	case c.objects > maxObjects || c.members > maxMembers:
		return 0, fmt.Errorf("it has more than %d objects or %d members", maxObjects, maxMembers)
	}
	return n, err
}
