package report

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// withdrawTimeout is the timeout of a request to withdraw a job: a job that waits gains nothing by a slow one.
const withdrawTimeout = time.Second

// Withdraw requests that an upstream withdraw a waiting job, and reports whether it does. path has {id} for the job's ID.
func (s *Source) Withdraw(address, path, id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
	defer cancel()
	r, err := newRequest(ctx, http.MethodDelete, upstreamURL(address, strings.ReplaceAll(path, "{id}", url.PathEscape(id))))
	if err != nil {
		return false
	}
	response, err := s.client.Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxDrained) // so that the connection can be used again
	return response.StatusCode/100 == 2
}
