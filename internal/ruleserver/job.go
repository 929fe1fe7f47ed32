package ruleserver

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// Outcome is how a job ended.
type Outcome string

const (
	outcomeOK        Outcome = "ok"
	outcomeFailed    Outcome = "failed"
	outcomeCancelled Outcome = "cancelled" // the submitter closed the connection
	outcomeTimeout   Outcome = "timeout"
	outcomeRejected  Outcome = "rejected" // refused before the executor got it; not counted in metrics
)

// Record is the result of an ended job.
type Record struct {
	Session  string
	Project  string // empty if the server could not read it
	Priority string
	Prefetch bool // it only loaded the project's data
	Outcome  Outcome
	Status   int
	Facts    executor.Facts
	Total    time.Duration // from the request's headers to the end of the response
	Bytes    int64         // of the response's body
	Err      error         // why the outcome is not ok
}

// serve serves a job, or a prefetch: that loads a project's data into the cache before jobs need it (the thesis, 3.2), with
// high priority, and gets a 204.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	record, whole := s.process(w, r, r.URL.Path == prefetchPath)
	record.Total = time.Since(begin)
	s.metrics.observe(record)
	if s.config.OnJob != nil {
		s.config.OnJob(record)
	}
	if !whole {
		panic(http.ErrAbortHandler) // aborts the connection, so that the truncated response does not look complete
	}
}

// process reads the job, evaluates it and responds. It returns the completed
// record, and whether the response is complete.
func (s *Server) process(w http.ResponseWriter, r *http.Request, prefetch bool) (record Record, whole bool) {
	record.Prefetch = prefetch
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
	default:
		return s.refuse(w, r, record, fmt.Errorf("%w: it has %d jobs", errFull, cap(s.open))), true
	}
	if s.draining.Load() {
		return s.refuse(w, r, record, errDraining), true
	}
	task, err := s.read(w, r)
	if err != nil {
		return s.refuse(w, r, record, err), true
	}
	record.Session, record.Project, record.Priority = task.job.Session, string(task.job.Project), string(task.job.Priority)
	task.prefetch = prefetch
	request, err := s.request(task)
	if err != nil {
		return s.refuse(w, r, record, err), true
	}

	submitted := s.executor.Submit(request)
	defer s.executor.Leave(submitted) // after the response: until then the job counts as running
	if id := r.Header.Get(idHeader); id != "" {
		if _, used := s.ids.LoadOrStore(id, submitted); !used {
			defer s.ids.Delete(id)
		}
	}
	result, err := s.executor.Wait(r.Context(), submitted)
	record.Facts = s.executor.Facts(submitted)
	if err != nil {
		return s.refuse(w, r, record, err), true
	}
	record.Outcome = outcomeOK
	s.setLoad(w.Header(), r.Header, record.Facts)
	if prefetch {
		record.Status = http.StatusNoContent
		w.WriteHeader(record.Status)
		return record, true
	}
	w.Header().Set("Content-Type", string(task.format))
	w.Header().Set("Vary", "Accept")
	return stream(w, record, result.Value.([]byte), timeoutOr(task.job.Timeouts.Stream, time.Hour))
}

// idHeader is the request header with the ID for withdrawing a job. The sender must use an ID only once.
const idHeader = "Job-Id"

// withdraw ends a job that has not started. It responds with 204, and the job itself gets a response for withdrawn jobs. A
// job that has started continues (409). An unknown one may have ended (404).
func (s *Server) withdraw(w http.ResponseWriter, r *http.Request) {
	status := http.StatusNotFound
	if j, ok := s.ids.Load(r.PathValue("id")); ok {
		status = http.StatusConflict
		if s.executor.Withdraw(j.(*executor.Job)) {
			status = http.StatusNoContent
		}
	}
	w.WriteHeader(status)
}

// refuse responds with a problem document.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, record Record, err error) Record {
	p := problemOf(err)
	record.Status, record.Outcome, record.Err = p.Status, p.outcome, err
	s.setLoad(w.Header(), r.Header, record.Facts)
	p.write(w, record.Facts.Started)
	return record
}

// stream responds with a result.
func stream(w http.ResponseWriter, record Record, text []byte, timeout time.Duration) (_ Record, whole bool) {
	// It fails for a connection without deadlines, as in tests: then there is no timeout. net/http
	// resets the deadline after the response.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	record.Status = http.StatusOK
	w.WriteHeader(record.Status)
	n, err := w.Write(text)
	record.Bytes = int64(n)
	if err == nil {
		return record, true
	}
	record.Outcome, record.Err = outcomeCancelled, err
	if errors.Is(err, os.ErrDeadlineExceeded) {
		record.Outcome = outcomeTimeout
	}
	return record, false
}
