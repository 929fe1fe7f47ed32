// Package replay submits jobs to real sidecars, or to real upstreams, when they are due,
// and measures what the submitters see. A job is sent when its time has come, however late the
// responses to other jobs are: slow upstreams cannot hide that they are slow. A header says
// what each job costs, for reference servers that trust it.
package replay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/trace"
)

// Config is one replay. All but Hint and Transport is required.
type Config struct {
	Jobs []trace.Job
	// Targets are where jobs go, as http://host:port. A job's submitter chooses among them,
	// as it does among simulated sidecars.
	Targets []string
	// Speed divides all offsets, costs and timeouts.
	Speed float64
	// Observe is called once for each job that ends, one call at a time.
	Observe func(*Result)
	// Name tells the jobs of this replay from those of others, whose results
	// upstreams may have kept.
	Name string
	// Hint reads what an upstream says about a job in the header of a response that
	// began at that instant. Without it, waits at upstreams stay unknown.
	Hint func(http.Header, time.Time) (pool.Hint, bool)
	// Transport carries the jobs; nil keeps 256 connections to each target.
	Transport http.RoundTripper
}

// Result is how one job ended, as its submitter saw it. Times are in the jobs' own
// seconds. They count from when the job was due, so that a replay that falls behind
// does not look fast. A time that was not seen is negative.
type Result struct {
	// Line is the job's, counted from 1.
	Line trace.Line
	Job  trace.Job
	// Late is how long after it was due the job was sent.
	Late float64
	// Wait is from reception at the upstream to the start of execution, where the
	// upstream tells it.
	Wait float64
	// LastByte is the time to the end of the response.
	LastByte float64
	// Upstream is the address that the sidecar named; "" if it named none.
	Upstream string
	// Fetched means that it caused a fetch of its project's data. It is false if the
	// upstream does not tell.
	Fetched bool
	// Status is the response's; 0 without one.
	Status int
	// Err is why there was no response, or not all of it; nil if all came.
	Err error
}

// OK reports whether the job was done.
func (r *Result) OK() bool { return r.Err == nil && r.Status/100 == 2 }

// player is one replay under way.
type player struct {
	Config
	began     time.Time
	ended     []chan struct{} // by job
	observing sync.Mutex
}

// longest bounds a replay.
const longest = time.Hour

// Run sends the jobs, and returns when all that were sent have ended and were observed. It
// ends early when ctx ends, or after an hour; the error says which.
func Run(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("replay: it is not over after %v", longest))
	defer cancel()
	if cfg.Transport == nil {
		transport := newTransport()
		defer transport.CloseIdleConnections()
		cfg.Transport = transport
	}
	p := &player{Config: cfg, began: time.Now(), ended: make([]chan struct{}, len(cfg.Jobs))}
	for i := range p.ended {
		p.ended[i] = make(chan struct{})
	}
	var running sync.WaitGroup
	defer running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range cfg.Jobs {
		live := compress(cfg.Jobs[i], cfg.Speed)
		timer.Reset(max(0, duration(live.Offset)-time.Since(p.began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		running.Go(func() { p.play(ctx, i, &live) })
	}
	return nil
}

// newTransport is of many submitters, who keep their connections.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     time.Minute,
	}
}

// play takes one job to its end.
func (p *player) play(ctx context.Context, i int, live *trace.Job) {
	defer close(p.ended[i])
	r := Result{Line: trace.Line(i + 1), Job: p.Jobs[i], Wait: -1, LastByte: -1}
	due := p.began.Add(duration(live.Offset))
	if live.After > 0 {
		if before := p.ended[live.After-1]; !isClosed(before) {
			<-before // it is closed at the end of the replay, if not before
			due = time.Now()
		}
	}
	since := func(at time.Time) float64 { return max(0, at.Sub(due).Seconds()) * p.Speed }
	r.Late = since(time.Now())
	if r.Err = p.post(ctx, &r, live); r.Err == nil {
		r.LastByte = since(time.Now())
	}
	p.observing.Lock()
	defer p.observing.Unlock()
	p.Observe(&r)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// post sends a job and reads its response to the end.
func (p *player) post(ctx context.Context, r *Result, live *trace.Job) error {
	sent, err := request(ctx, p.Name, p.Targets[live.Submitter%int64(len(p.Targets))], r.Line, live)
	if err != nil {
		return err
	}
	answer, err := p.Transport.RoundTrip(sent)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	first := time.Now()
	r.Status, r.Upstream = answer.StatusCode, answer.Header.Get("Pilotfish-Upstream")
	if p.Hint != nil {
		if hint, ok := p.Hint(answer.Header, first); ok {
			r.Fetched, r.Wait = hint.Fetched > 0, max(-1, hint.Waited.Seconds()*p.Speed)
		}
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// compress returns a job as it is in time that passes speed times as fast: its
// offset, costs and timeouts divided by speed.
func compress(job trace.Job, speed float64) trace.Job {
	for _, seconds := range []*float64{
		&job.Offset, &job.Load, &job.SharedRules, &job.Operators, &job.Output,
		&job.Timeouts.Queue, &job.Timeouts.Evaluate, &job.Timeouts.Stream,
	} {
		*seconds /= speed
	}
	return job
}

// duration converts seconds.
func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
