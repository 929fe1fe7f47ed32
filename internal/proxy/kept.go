package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// maxKept bounds the body of an answer that is kept while the job is tried
// elsewhere; a longer one is passed on instead.
const maxKept = 64 << 10

// kept is an upstream's whole answer that says that it did not start the job:
// passed on only if no other upstream does better.
type kept struct {
	response *http.Response
	body     []byte
}

// notStarted keeps an answer that says that nothing was done for the job, and
// ends its attempt.
func (x *exchange) notStarted(a *answer) bool {
	if !a.refused() {
		return false
	}
	timer, _ := x.bound(a.cancel)
	defer timer.Stop()
	body, err := io.ReadAll(io.LimitReader(a.Body, maxKept+1))
	if err == nil && len(body) > maxKept {
		a.Body = &rejoined{Reader: io.MultiReader(bytes.NewReader(body), a.Body), Closer: a.Body}
		return false
	}
	if err == nil {
		x.last = &kept{response: a.Response, body: body}
	}
	_ = a.Body.Close()
	a.cancel(nil)
	x.hint(a.Header)
	x.failure = x.lost(&failure{
		Failure: dispatch.Failure{Outcome: pool.NotStarted, Progress: dispatch.Heard},
		err:     fmt.Errorf("%w: %s did not start the job", record.ErrNoAnswer, x.lease.Address),
	})
	return true
}

// rejoined is a body of which the beginning was read.
type rejoined struct {
	io.Reader
	io.Closer
}

// answer is the kept answer, as if it came now.
func (k *kept) answer() *answer {
	ctx, cancel := context.WithCancelCause(context.Background())
	k.response.Body = io.NopCloser(bytes.NewReader(k.body))
	return &answer{Response: k.response, ctx: ctx, cancel: cancel}
}
