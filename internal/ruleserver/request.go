package ruleserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// bodyTimeout is the timeout of reading a request's body.
const bodyTimeout = 5 * time.Minute

// task is a parsed request.
type task struct {
	job      rules.Job
	format   rules.Format
	cost     Cost
	expected time.Duration
	prefetch bool // only load the project's data into the cache
}

// expectedHeader is the request header with the job's expected duration in seconds.
const expectedHeader = "Job-Expected"

// expected reads that header. An invalid value is ignored.
func expected(h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get(expectedHeader), 64)
	if err != nil || !(seconds > 0 && seconds < time.Hour.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// read reads a request.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (task, error) {
	if r.Header.Get("Content-Encoding") != "" {
		return task{}, errEncoded
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return task{}, err
	}
	job, err := rules.ParseJob(body)
	if err != nil {
		return task{}, err
	}
	cost := s.config.Settings.Cost
	if own := r.Header.Get(costHeader); own != "" && s.config.Settings.TrustCost {
		if cost, err = ParseCost(own); err != nil {
			return task{}, fmt.Errorf("%w: %w", errCost, err)
		}
	}
	format := rules.NDJSON
	if strings.Contains(r.Header.Get("Accept"), string(rules.CSV)) {
		format = rules.CSV
	}
	return task{job: job, format: format, cost: cost, expected: expected(r.Header)}, nil
}

// readBody reads the whole body of a request, up to MaxBody bytes.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// A connection without deadlines, as in tests, has no timeout. net/http removes
	// the deadline at the end of the body.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.config.Settings.MaxBody)))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	return body, nil
}

// request returns the executor's request for a task.
func (s *Server) request(t task) (executor.Request, error) {
	version, err := s.feeds.version(t.job.Project)
	if err != nil {
		return executor.Request{}, err
	}
	request := executor.Request{
		Priority: executor.Low, Chain: s.chain(t, version), Expected: t.expected, Unlearned: s.config.Settings.Order != OrderExpected,
		Queue: timeoutOr(t.job.Timeouts.Queue, 240*time.Second), Evaluate: timeoutOr(t.job.Timeouts.Evaluate, 30*time.Minute),
	}
	if t.job.Priority == rules.High || t.prefetch {
		request.Priority = executor.High
	}
	if t.prefetch {
		request.Chain = request.Chain[:1]
	}
	if s.config.Settings.Order == OrderArrival {
		request.Expected = 0
	}
	return request, nil
}

// timeoutOr is a timeout of a job in seconds, or the default when the job gives none.
func timeoutOr(seconds float64, otherwise time.Duration) time.Duration {
	if seconds == 0 {
		return otherwise
	}
	return time.Duration(seconds * float64(time.Second))
}

// chain splits a job into its joblets. The key of a joblet has all that its result
// depends on: the version of the data and the digests of the operators so far.
func (s *Server) chain(t task, version int64) []executor.Joblet {
	joblet := func(kind executor.Kind, inputs string, work func(*rules.Feed) (executor.Result, error)) executor.Joblet {
		key := executor.Key{Kind: kind, Project: string(t.job.Project), Version: version, Inputs: inputs}
		cores := t.cost.cores
		if kind == executor.FeedSource {
			cores = 1
		}
		uncached := t.job.CacheResult != nil && !*t.job.CacheResult && kind != executor.FeedSource
		return executor.Joblet{Key: key, Cores: int(cores), Uncached: uncached, Work: s.lasting(t.cost.of(kind), work)}
	}
	apply := func(operators rules.Operators, p rules.Presentation) func(*rules.Feed) (executor.Result, error) {
		return func(feed *rules.Feed) (executor.Result, error) {
			made, saved, err := rules.Apply(feed, operators, p, int64(s.config.Settings.MaxFeed))
			if err != nil {
				return executor.Result{}, err
			}
			s.metrics.optimised(saved)
			return feedResult(made), nil
		}
	}
	shared := t.job.Shared.Digest()
	channel := shared + " " + t.job.Channel.Digest()
	shown := t.job.Presentation
	if len(shown.Omit) > 0 { // rules that only change omitted fields are not applied
		channel += " " + shown.Digest()
	}
	return []executor.Joblet{
		joblet(executor.FeedSource, "", func(*rules.Feed) (executor.Result, error) {
			feed, err := s.feeds.read(t.job.Project)
			if err != nil {
				return executor.Result{}, err
			}
			result := feedResult(feed)
			result.Bytes = max(result.Bytes, t.cost.bytes)
			return result, nil
		}),
		joblet(executor.SharedOperators, shared, apply(t.job.Shared, rules.Presentation{})),
		joblet(executor.Operators, channel, apply(t.job.Channel, shown)),
		joblet(executor.OutputFeed, channel+" "+shown.Digest()+" "+string(t.format), func(feed *rules.Feed) (executor.Result, error) {
			text := shown.Present(feed).Encode(t.format)
			return executor.Result{Value: text, Bytes: int64(cap(text))}, nil
		}),
	}
}

func feedResult(feed *rules.Feed) executor.Result {
	return executor.Result{Value: feed, Bytes: feed.Bytes()}
}
