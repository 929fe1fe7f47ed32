package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// exchange is one job on its way through the proxy. It belongs to the
// handler's goroutine.
type exchange struct {
	p      *Proxy
	w      http.ResponseWriter
	r      *http.Request
	rc     *http.ResponseController
	record *record.Job
	body   *intake.Body

	job     *dispatch.Job
	lease   *balancer.Lease // of the attempt under way
	failure *failure        // of the last attempt
	last    *kept           // the last answer that was not passed on

	begun bool // the head of an answer was written
}

func newExchange(p *Proxy, w http.ResponseWriter, r *http.Request) *exchange {
	return &exchange{
		p: p, w: w, r: r,
		rc:     http.NewResponseController(w),
		record: &record.Job{Arrived: time.Now(), Outcome: intake.Broken},
	}
}

// claim claims an upstream for the next attempt.
func (x *exchange) claim(ctx context.Context) error {
	started := time.Now()
	lease, err := x.p.cfg.Claimer.Claim(ctx, x.job)
	x.record.Queued += time.Since(started)
	if err != nil {
		return err
	}
	x.lease = lease
	x.record.Begin(lease.Choice)
	return nil
}

// settle ends the lease of the attempt under way.
func (x *exchange) settle(o pool.Outcome, err error) {
	lease := x.lease
	x.lease = nil
	x.record.Settle(o, err)
	lease.Done(o)
}

// exhausted is the end of the attempts: the last real answer if there was
// one, else the reason why there is none.
func (x *exchange) exhausted(ctx context.Context, err error) (*answer, error) {
	switch {
	case x.r.Context().Err() != nil:
		return nil, x.gone()
	case x.last != nil:
		return x.last.answer(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, pool.ErrAllTried) && x.failure != nil:
		return nil, x.failure.err
	}
	return nil, err
}

// end closes the books.
func (x *exchange) end() {
	if x.lease != nil { // a panic is passing
		x.settle(pool.Gone, nil)
	}
	x.record.Total = time.Since(x.record.Arrived)
	x.p.cfg.Observe(x.record)
}
