package proxy

import (
	"io"
	"time"

	"example.org/pilotfish/internal/proxy/upstreamclient"
)

// Bounds of the body of a response that is kept while the job is tried elsewhere. A longer one
// is passed on instead, one that takes longer is lost.
const (
	maxRefusal  = 64 << 10
	refusalTime = time.Second
)

// refusal is an upstream's whole response that says that it did not start the
// job, or an unwanted one. It is passed on only if no other upstream does better.
type refusal struct {
	done     bool                     // the upstream has done the job
	response *upstreamclient.Response // read to its end, and closed
	body     []byte
}

// readRefusal reads the rest of a response, until then at most, or so much of
// it that it is longer than a refusal may be.
func readRefusal(response *upstreamclient.Response, until time.Time) (*refusal, error) {
	body, err := io.ReadAll(io.LimitReader(bodyUntil{response, until}, maxRefusal+1))
	return &refusal{response: response, body: body}, err
}

// bodyUntil reads a response's body until an instant.
type bodyUntil struct {
	response *upstreamclient.Response
	until    time.Time
}

func (b bodyUntil) Read(p []byte) (int, error) { return b.response.Read(p, b.until) }
