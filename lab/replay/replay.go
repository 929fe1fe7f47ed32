// Package replay submits jobs to real sidecars or upstreams and measures them from the submitter's side. It is an open
// loop: each job is sent when it is due, so that slow responses do not reduce the load. A header states the costs of
// each job, for reference servers that trust it.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"example.org/pilotfish/lab/trace"
)

// Config is one replay. Jobs and Targets are required.
type Config struct {
	Jobs []trace.Job
	// Recordings are the requests of the jobs; nil generates requests from the jobs.
	Recordings []Recording
	// Limit bounds the replay; 0 is an hour.
	Limit time.Duration
	// Targets are URLs like http://host:port. A job's Submitter modulo their number is its
	// target, as with simulated sidecars.
	Targets []string
	// Transport sends the jobs; nil is a transport that keeps up to 256 idle connections to each target.
	Transport http.RoundTripper
}

// Result is the result of one job from the submitter's side. Times are in seconds. They count
// from when the job was due, so that a late replay does not look fast.
type Result struct {
	// Line is the job's number, counted from 1.
	Line trace.Line
	Job  trace.Job
	// Late is how late the job was sent.
	Late float64
	// FirstByte is the time to the response's head, LastByte the time to its end; -1 without one.
	FirstByte, LastByte float64
	// Status and Header are the response's; 0 and nil without one.
	Status int
	Header http.Header
	// Err is why the response is missing or incomplete; nil if it is complete.
	Err error
}

// OK reports whether the job succeeded.
func (r *Result) OK() bool { return r.Err == nil && r.Status/100 == 2 }

// player is a running replay.
type player struct {
	Config
	began time.Time
	ended []chan struct{} // by job
}

// Run sends the jobs and returns when all have ended. If ctx is done or the limit is reached
// before all jobs are sent, it returns the results so far, and an error with the reason.
func Run(ctx context.Context, cfg Config) ([]Result, error) {
	cfg.Limit = cmp.Or(cfg.Limit, time.Hour)
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Limit, fmt.Errorf("replay: not finished after %v", cfg.Limit))
	defer cancel()
	if cfg.Transport == nil {
		transport := &http.Transport{ // like many submitters that keep their connections
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, DisableCompression: true,
			MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute,
		}
		defer transport.CloseIdleConnections()
		cfg.Transport = transport
	}
	p := &player{Config: cfg, began: time.Now(), ended: make([]chan struct{}, len(cfg.Jobs))}
	for i := range p.ended {
		p.ended[i] = make(chan struct{})
	}
	results := make([]Result, len(cfg.Jobs))
	var running sync.WaitGroup
	defer running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range cfg.Jobs {
		timer.Reset(max(0, trace.Duration(cfg.Jobs[i].Offset)-time.Since(p.began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return results[:i], context.Cause(ctx)
		}
		running.Go(func() { results[i] = p.play(ctx, i) })
	}
	return results, nil
}

// play sends one job and waits for its end.
func (p *player) play(ctx context.Context, i int) (r Result) {
	defer close(p.ended[i])
	r = Result{Line: trace.Line(i + 1), Job: p.Jobs[i], FirstByte: -1, LastByte: -1}
	due := p.began.Add(trace.Duration(r.Job.Offset))
	if r.Job.After > 0 {
		before := p.ended[r.Job.After-1]
		select {
		case <-before:
		default:
			<-before // closed at the end of the replay at the latest
			due = time.Now()
		}
	}
	since := func(at time.Time) float64 { return max(0, at.Sub(due).Seconds()) }
	r.Late = since(time.Now())
	if r.Err = p.post(ctx, i, &r, since); r.Err == nil {
		r.LastByte = since(time.Now())
	}
	return r
}

// post sends a job and reads its response to the end.
func (p *player) post(ctx context.Context, i int, r *Result, since func(time.Time) float64) error {
	target := p.Targets[r.Job.Submitter%int64(len(p.Targets))]
	sent, err := request(ctx, target, r.Line, &r.Job)
	if p.Recordings != nil {
		sent, err = p.Recordings[i].request(ctx, target)
	}
	if err != nil {
		return err
	}
	answer, err := p.Transport.RoundTrip(sent)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	r.Status, r.Header, r.FirstByte = answer.StatusCode, answer.Header, since(time.Now())
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
