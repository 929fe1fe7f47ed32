package ruleserver

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// bodyIdle bounds the time without a byte of a request's body.
const bodyIdle = 30 * time.Second

var errEncoded = errors.New("the body has a Content-Encoding: send it as it is")

// errBody says that the body of a request did not arrive whole.
type errBody struct{ err error }

func (e errBody) Error() string { return fmt.Sprintf("reading the body: %v", e.err) }
func (e errBody) Unwrap() error { return e.err }

// readBody reads the whole body of a request, up to MaxBody bytes. The body may
// arrive slowly, but not pause for longer than bodyIdle.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "" {
		return nil, errEncoded
	}
	connection := http.NewResponseController(w)
	reader := &idleReader{
		from: http.MaxBytesReader(w, r.Body, int64(s.settings.MaxBody)),
		// A connection without deadlines, as in tests, has no timeout.
		before: func() { _ = connection.SetReadDeadline(time.Now().Add(bodyIdle)) },
	}
	body, err := io.ReadAll(reader)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, errBody{err}
	}
	return body, nil // net/http removes the deadline at the end of the body
}

type idleReader struct {
	from   io.Reader
	before func()
}

func (r *idleReader) Read(p []byte) (int, error) {
	r.before()
	return r.from.Read(p)
}

func parse(body []byte, prefetch bool) (rules.Job, error) {
	if prefetch {
		return rules.ParsePrefetch(body)
	}
	return rules.ParseJob(body)
}

// request is what a job asks of the executor.
func (s *Server) request(header http.Header, job rules.Job, format rules.Format, prefetch bool) (executor.Request, error) {
	version, err := s.feeds.version(job.Project)
	if err != nil {
		return executor.Request{}, err
	}
	cost, err := s.costOf(header)
	if err != nil {
		return executor.Request{}, err
	}
	cost.slowness = s.faults.slowness()
	chain := s.chain(job, version, format, cost)
	if prefetch {
		chain = chain[:1]
	}
	priority := executor.Low
	if job.Priority == rules.High {
		priority = executor.High
	}
	t := timeouts(job)
	return executor.Request{Priority: priority, Chain: chain, Queue: t.Queue, Evaluate: t.Evaluate}, nil
}

// timeouts are the job's own where it gives them.
func timeouts(job rules.Job) rules.Timeouts {
	return job.Timeouts.Or(rules.Timeouts{Queue: 240 * time.Second, Evaluate: 30 * time.Minute, Stream: time.Hour})
}

// costOf is the cost of a job's joblets: the job's own if it brings one and the
// server trusts it.
func (s *Server) costOf(header http.Header) (Cost, error) {
	own := header.Get(costHeader)
	if own == "" || !s.settings.TrustCost {
		return s.settings.Cost, nil
	}
	cost, err := ParseCost(own)
	if err != nil {
		return Cost{}, errCost{err}
	}
	return cost, nil
}

// formatOf reads an Accept header. The format is CSV when the header names it and
// prefers it to NDJSON.
func formatOf(accept string) rules.Format {
	if quality(accept, string(rules.CSV)) > quality(accept, string(rules.NDJSON)) {
		return rules.CSV
	}
	return rules.NDJSON
}

// quality is the weight of a name in an Accept or Accept-Encoding header: 0 when the
// header does not name it, otherwise its q, which is 1 by default.
func quality(accept, name string) float64 {
	for element := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(element)
		if err != nil || media != name {
			continue
		}
		text, given := parameters["q"]
		if !given {
			return 1
		}
		q, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0
		}
		return q
	}
	return 0
}
