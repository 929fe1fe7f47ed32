package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"example.org/pilotfish/lab/trace"
)

// player is one replay under way.
type player struct {
	cfg       Config
	began     time.Time
	places    chan struct{} // holds one for each job that is open
	jobs      sync.WaitGroup
	observing sync.Mutex

	mu   sync.Mutex
	open map[trace.Line]chan struct{} // closed when the job ends
}

// Run sends the jobs, and returns when all have ended and were observed. It ends
// early at an error of the source, after Within, or when ctx ends; the error says
// which. Jobs that were sent are observed in every case.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Within,
		fmt.Errorf("replay: it is not over after %v", cfg.Within))
	defer cancel()
	if cfg.Transport == nil {
		transport := newTransport()
		defer transport.CloseIdleConnections()
		cfg.Transport = transport
	}
	p := &player{
		cfg: cfg, began: time.Now(),
		places: make(chan struct{}, cfg.Open), open: make(map[trace.Line]chan struct{}),
	}
	err := p.send(ctx)
	p.jobs.Wait()
	return err
}

// send starts every job when it is due.
func (p *player) send(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for line := trace.Line(1); line <= trace.Line(p.cfg.Jobs); line++ {
		job, err := p.cfg.Source.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		live := compress(job, p.cfg.Speed)
		timer.Reset(max(0, due(&live)-time.Since(p.began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		first := p.enter(line, live.After)
		p.jobs.Go(func() { p.play(ctx, line, &job, &live, first) })
	}
	return nil
}

// enter notes that a job is open. It returns a channel that is closed when the job
// that it waits for has ended; nil if it waits for none.
func (p *player) enter(line, after trace.Line) (first <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[line] = make(chan struct{})
	return p.open[after] // lines count from 1
}

func (p *player) leave(line trace.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.open[line])
	delete(p.open, line)
	<-p.places
}

// play takes one job to its end.
func (p *player) play(ctx context.Context, line trace.Line, job, live *trace.Job, first <-chan struct{}) {
	defer p.leave(line)
	s := sighting{due: p.began.Add(due(live))}
	if first != nil {
		<-first // it is closed at the end of the replay, if not before
		s.due = time.Now()
	}
	p.post(ctx, &s, p.cfg.Targets[live.Submitter%int64(len(p.cfg.Targets))], line, live)
	r := s.result(p.cfg.Speed)
	r.Line, r.Job = line, *job
	if p.cfg.Hint != nil && s.header != nil {
		if hint, ok := p.cfg.Hint(s.header, s.first); ok {
			r.Fetched, r.Wait = hint.Fetched > 0, max(-1, hint.Waited.Seconds()*p.cfg.Speed)
		}
	}
	p.observing.Lock()
	defer p.observing.Unlock()
	p.cfg.Observe(&r)
}

// post sends a job and reads its response to the end.
func (p *player) post(ctx context.Context, s *sighting, target string, line trace.Line, live *trace.Job) {
	defer func() {
		s.last = time.Now()
		s.stopped = s.err != nil && ctx.Err() != nil
	}()
	s.sent = time.Now()
	r, err := request(ctx, p.cfg.Name, target, line, live)
	if err != nil {
		s.err = err
		return
	}
	answer, err := p.cfg.Transport.RoundTrip(r)
	if err != nil {
		s.err = err
		return
	}
	defer answer.Body.Close()
	s.first, s.status, s.header = time.Now(), answer.StatusCode, answer.Header
	_, s.err = io.Copy(io.Discard, answer.Body)
}

// due is when a job is sent, since the start of the replay.
func due(job *trace.Job) time.Duration { return duration(job.Offset) }

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

// duration converts the trace's seconds.
func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
