package ruleserver

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// Outcome is how a job ended.
type Outcome string

const (
	outcomeOK        Outcome = "ok"
	outcomeFailed    Outcome = "failed"
	outcomeCancelled Outcome = "cancelled" // the submitter left
	outcomeTimeout   Outcome = "timeout"
	outcomeRejected  Outcome = "rejected" // before the executor had it; such a job is in no metric
)

// Record is what is known of a job or prefetch after its end.
type Record struct {
	Prefetch bool
	Session  string
	Project  string // empty when the server could not read it
	Priority string
	Outcome  Outcome
	Status   int
	Facts    executor.Facts
	Total    time.Duration // from the request's headers to the end of the response
	Bytes    int64         // of the response's body
	Err      error         // why the outcome is not ok
}

func (s *Server) serveJob(w http.ResponseWriter, r *http.Request)      { s.serve(w, r, false) }
func (s *Server) servePrefetch(w http.ResponseWriter, r *http.Request) { s.serve(w, r, true) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request, prefetch bool) {
	begin := time.Now()
	record, whole := s.process(w, r, Record{Prefetch: prefetch})
	record.Total = time.Since(begin)
	s.metrics.observe(record)
	if s.onJob != nil {
		s.onJob(record)
	}
	if !whole {
		panic(http.ErrAbortHandler) // breaks the connection, so that the response does not look whole
	}
}

// process reads the job, has it evaluated and responds. It returns the completed
// record, and whether the response is whole.
func (s *Server) process(w http.ResponseWriter, r *http.Request, record Record) (_ Record, whole bool) {
	report := s.orcaOf(r.Header)
	if err := s.open.enter(); err != nil {
		return s.refuse(w, record, report, err), true
	}
	defer s.open.leave()
	body, err := s.readBody(w, r)
	if err != nil {
		return s.refuse(w, record, report, err), true
	}
	job, err := parse(body, record.Prefetch)
	if err != nil {
		return s.refuse(w, record, report, err), true
	}
	record.Session, record.Project, record.Priority = job.Session, job.Project, string(job.Priority)
	format := formatOf(r.Header.Get("Accept"))
	request, err := s.request(r.Header, job, format, record.Prefetch)
	if err != nil {
		return s.refuse(w, record, report, err), true
	}

	submitted := s.executor.Submit(request)
	defer submitted.Close() // after the response: until then the job counts as running
	if s.announcesStart(r) && submitted.AwaitStart(r.Context()) == nil {
		s.announceStart(w, submitted.Facts())
	}
	result, err := submitted.Wait(r.Context())
	record.Facts = submitted.Facts()
	switch {
	case err != nil:
		return s.refuse(w, record, report, err), true
	case record.Prefetch:
		record.Status, record.Outcome = http.StatusNoContent, outcomeOK
		report.trailer = false // there is no body, so there can be no trailer
		s.setLoad(w.Header(), report, record.Facts)
		w.WriteHeader(record.Status)
		return record, true
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Vary", "Accept")
	return s.stream(w, record, report, result.Value.([][]byte), timeouts(job).Stream)
}

// startedHeader says in a 102 that the job has begun ("yes"), and in a refusal that it
// has not ("no").
const startedHeader = "Job-Started"

// announcesStart reports whether the submitter gets a 102 when its job begins. It asks
// for that by a preference (RFC 7240).
func (s *Server) announcesStart(r *http.Request) bool {
	asked := quality(strings.Join(r.Header.Values("Prefer"), ","), "job-started") > 0
	return (asked || s.settings.AnnounceStart) && r.ProtoAtLeast(1, 1) // HTTP/1.0 has no 1xx
}

// announceStart sends an interim response if the job has begun. Its load hint says
// how long the job waited and whether its data is cached.
func (s *Server) announceStart(w http.ResponseWriter, job executor.Facts) {
	if !job.Started {
		return
	}
	w.Header().Set(startedHeader, "yes")
	s.setLoad(w.Header(), orca{}, job)
	w.WriteHeader(http.StatusProcessing)
	w.Header().Del(startedHeader) // or the final response would have it too
}

// refuse responds with a problem.
func (s *Server) refuse(w http.ResponseWriter, record Record, report orca, err error) Record {
	p := problemOf(err)
	record.Status, record.Outcome, record.Err = p.Status, p.outcome, err
	report.trailer = false // the body is short
	s.setLoad(w.Header(), report, record.Facts)
	p.write(w, record.Facts.Started)
	return record
}

// stream responds with the chunks of a result, and flushes each one.
func (s *Server) stream(w http.ResponseWriter, record Record, report orca, chunks [][]byte, timeout time.Duration) (_ Record, whole bool) {
	connection := http.NewResponseController(w)
	// A connection without deadlines, as in tests, has no timeout.
	_ = connection.SetWriteDeadline(time.Now().Add(timeout))
	record.Status, record.Outcome = http.StatusOK, outcomeOK
	s.setLoad(w.Header(), report, record.Facts)
	if name := report.header(); name != "" && report.trailer {
		w.Header().Set("Trailer", name)
	}
	w.WriteHeader(record.Status)
	for _, chunk := range chunks {
		n, err := w.Write(chunk)
		record.Bytes += int64(n)
		if err == nil {
			err = connection.Flush()
		}
		if err == nil || errors.Is(err, http.ErrNotSupported) {
			continue
		}
		record.Outcome, record.Err = outcomeCancelled, err
		if errors.Is(err, os.ErrDeadlineExceeded) {
			record.Outcome = outcomeTimeout
		}
		return record, false
	}
	if report.trailer && !s.faults.is(faultSilent) {
		report.set(w.Header(), s.figures(), record.Facts)
	}
	return record, true // net/http removes the deadline after the end of the response
}
