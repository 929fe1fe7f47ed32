package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Pick is the result of a pick.
type Pick struct {
	// Project and Priority are the job's.
	Project  string `json:"project"`
	Priority string `json:"priority"`
	// Upstream is the picked upstream.
	Upstream string `json:"upstream"`
	// Ranking is the cost at each eligible upstream, the pick first.
	Ranking []pool.Ranked `json:"ranking"`
}

// pick returns the upstream that a job would go to, and why, like the scheduler
// interface of the thesis (7.3). The job is given by the query, or its body is the body of the
// request. Nothing is claimed or sent.
func (cfg *Config) pick(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	p := Pick{Project: q.Get("project"), Priority: cmp.Or(q.Get("priority"), selection.Low.String())}
	priority, ok := selection.ParsePriority(p.Priority)
	if !ok {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("priority: %q is neither high nor low", p.Priority))
		return
	}
	values := q["length_key"]
	if len(values) > intake.MaxPlaces {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("length_key: %d values are more than %d", len(values), intake.MaxPlaces))
		return
	}
	job := pool.Request{Project: intake.Key(p.Project), Priority: priority, LengthKey: intake.LengthKey(values)}
	if r.Method == http.MethodPost {
		facts, err := cfg.Describe(r.Body, r.ContentLength)
		if err != nil {
			status := http.StatusBadRequest
			if errors.Is(err, intake.ErrTooLarge) {
				status = http.StatusRequestEntityTooLarge
			} else if errors.Is(err, intake.ErrNoRoom) {
				w.Header().Set("Retry-After", "1")
				status = http.StatusServiceUnavailable
			}
			refuse(w, status, err.Error())
			return
		}
		p.Project, p.Priority = facts.Project, facts.Priority.String()
		job = pool.Request{Project: facts.Key, Data: facts.Data, Bytes: facts.Bytes, LengthKey: facts.LengthKey, Priority: facts.Priority}
	}
	p.Ranking, err = cfg.Explain(job)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	p.Upstream = p.Ranking[0].Address
	reply(w, http.StatusOK, p)
}
