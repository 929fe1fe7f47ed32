// Package replay submits jobs to real sidecars, or to real upstreams, when they are due, and measures what submitters
// see. It is an open loop: a job is sent when it is due, however late other responses are, so that slow upstreams do not slow
// the load down. A header states what each job costs, for reference servers that trust it.
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
	// Recordings are the requests of the jobs; without them, requests are made from the jobs.
	Recordings []Recording
	// Limit bounds the replay; 0 is an hour.
	Limit time.Duration
	// Targets are where jobs go, as http://host:port. A job's submitter chooses among them,
	// as it does among simulated sidecars.
	Targets []string
	// Transport carries the jobs; nil keeps 256 connections to each target.
	Transport http.RoundTripper
}

// Result is how one job ended, as its submitter saw it. Times are in seconds. They count
// from when the job was due, so that a replay that falls behind does not look fast.
type Result struct {
	// Line is the job's, counted from 1.
	Line trace.Line
	Job  trace.Job
	// Late is how long after it was due the job was sent.
	Late float64
	// FirstByte is the time to the head of the response, LastByte that to its end; -1 without one.
	FirstByte, LastByte float64
	// Status and Header are the response's; 0 and nil without one.
	Status int
	Header http.Header
	// Err is why there was no response, or not all of it; nil if all came.
	Err error
}

// OK reports whether the job was done.
func (r *Result) OK() bool { return r.Err == nil && r.Status/100 == 2 }

// player is one replay under way.
type player struct {
	Config
	began time.Time
	ended []chan struct{} // by job
}

// Run sends the jobs, and returns how they ended when all that were sent have ended. It
// ends early when ctx ends, or at the limit; the error says which.
func Run(ctx context.Context, cfg Config) ([]Result, error) {
	cfg.Limit = cmp.Or(cfg.Limit, time.Hour)
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Limit, fmt.Errorf("replay: it is not over after %v", cfg.Limit))
	defer cancel()
	if cfg.Transport == nil {
		transport := &http.Transport{ // of many submitters, who keep their connections
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

// play takes one job to its end.
func (p *player) play(ctx context.Context, i int) (r Result) {
	defer close(p.ended[i])
	r = Result{Line: trace.Line(i + 1), Job: p.Jobs[i], FirstByte: -1, LastByte: -1}
	due := p.began.Add(trace.Duration(r.Job.Offset))
	if r.Job.After > 0 {
		before := p.ended[r.Job.After-1]
		select {
		case <-before:
		default:
			<-before // it is closed at the end of the replay, if not before
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
