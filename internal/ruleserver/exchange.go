package ruleserver

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// exchange is one job's or prefetch's way through the server.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	record Record
}

func (s *Server) serveJob(w http.ResponseWriter, r *http.Request)      { s.serve(w, r, false) }
func (s *Server) servePrefetch(w http.ResponseWriter, r *http.Request) { s.serve(w, r, true) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request, prefetch bool) {
	begin := time.Now()
	x := &exchange{server: s, w: w, r: r, record: Record{Prefetch: prefetch}}
	whole := x.run()
	x.record.Total = time.Since(begin)
	s.metrics.observe(x.record)
	if s.config.OnJob != nil {
		s.config.OnJob(x.record)
	}
	if !whole {
		panic(http.ErrAbortHandler) // an answer that was cut must not look whole
	}
}

// run reads the job, has it evaluated and answers. It reports whether what it
// began to answer is whole.
func (x *exchange) run() (whole bool) {
	s := x.server
	if err := s.gate.enter(); err != nil {
		return x.refuse(err)
	}
	defer s.gate.leave()
	body, err := s.readBody(x.w, x.r)
	if err != nil {
		return x.refuse(err)
	}
	parse := rules.ParseJob
	if x.record.Prefetch {
		parse = rules.ParsePrefetch
	}
	job, err := parse(body)
	if err != nil {
		return x.refuse(err)
	}
	x.record.Session, x.record.Project, x.record.Priority = job.Session, job.Project, string(job.Priority)
	version, err := s.feeds.version(job.Project)
	if err != nil {
		return x.refuse(err)
	}
	cost, err := s.costOf(x.r)
	if err != nil {
		return x.refuse(err)
	}
	timeouts := job.Timeouts.Or(s.config.Timeouts)
	format := formatOf(x.r.Header.Get("Accept"))
	priority := executor.Low
	if job.Priority == rules.High {
		priority = executor.High
	}
	request := executor.Request{
		Priority: priority, Chain: s.chain(job, version, format, cost),
		Queue: timeouts.Queue, Evaluate: timeouts.Evaluate,
	}
	if x.record.Prefetch {
		request.Chain = request.Chain[:1]
	}

	submitted := s.executor.Submit(request)
	defer submitted.Close() // after the answer: until then the job is running
	result, err := submitted.Wait(x.r.Context())
	x.record.Facts = submitted.Facts()
	switch {
	case err != nil:
		return x.refuse(err)
	case x.record.Prefetch:
		return x.done(http.StatusNoContent)
	}
	x.w.Header().Set("Content-Type", string(format))
	x.w.Header().Set("Vary", "Accept")
	return x.stream(result.Value.([][]byte), timeouts.Stream)
}
