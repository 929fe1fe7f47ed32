package proxy

import (
	"io"
	"net/http"
	"time"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/upstreamclient"
)

// maxRefusal bounds the body of a response that is kept while the job is tried
// elsewhere; a longer one is passed on instead.
const maxRefusal = 64 << 10

// refusal is an upstream's whole response that says that it did not start the
// job, or an unwanted one. It is passed on only if no other upstream does better.
type refusal struct {
	done            bool // the upstream has done the job
	status          int
	header, trailer http.Header
	length          int64 // -1 unknown
	body            []byte
}

// readRefusal reads the rest of a response, until then at most, or so much of
// it that it is longer than a refusal may be.
func readRefusal(response *upstreamclient.Response, until time.Time) (*refusal, error) {
	body := bodyUntil{response, until}
	read, err := io.ReadAll(io.LimitReader(body, maxRefusal+1))
	return &refusal{
		status: response.StatusCode, header: response.Header, trailer: response.Trailer,
		length: response.ContentLength, body: read,
	}, err
}

// bodyUntil reads a response's body until an instant.
type bodyUntil struct {
	response *upstreamclient.Response
	until    time.Time
}

func (b bodyUntil) Read(p []byte) (int, error) { return b.response.Read(p, b.until) }

// write passes the refusal on. Its attempt has ended.
func (r *refusal) write(x *exchange) error {
	now := time.Now()
	x.book.Head(now, r.status, r.header)
	x.head(r.status, r.header, r.trailer, r.length)
	x.extend(now)
	err := x.write(r.body)
	if err == nil {
		err = x.flushEnd(r.length)
	}
	if err != nil {
		x.book.End(job.Left, err)
		return err
	}
	x.trailers(r.trailer)
	x.book.End(job.Whole, nil)
	return nil
}
