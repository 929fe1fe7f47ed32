package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// Now is what the page shows of the moment.
type Now struct {
	// At is the moment.
	At time.Time `json:"at"`
	// NotReady says why the sidecar does not want jobs; "" if it does.
	NotReady string `json:"not_ready,omitempty"`
	// InFlight are the jobs at upstreams, Waiting those in the sidecar's queue.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	// Imbalance is how far the jobs for each core at an upstream are from the mean of
	// all, over that mean; 0 is even.
	Imbalance float64 `json:"backlog_imbalance"`
	// Capacity is what the fleet can do and needs; absent while that is not known.
	Capacity *capacity.Advice `json:"capacity,omitempty"`
	// Fleet is how all jobs were served, and Upstreams how each upstream is.
	Fleet     quality.Served `json:"fleet"`
	Upstreams []Upstream     `json:"upstreams"`
	// Projects are the busiest, the busiest first.
	Projects []Project `json:"projects"`
	// Unread is what was passed on without being read.
	Unread *Unread `json:"unread,omitempty"`
	// Failures are the jobs that failed last, the latest first.
	Failures []Failure `json:"failures"`
	// Changes are the modes entered last, the latest last.
	Changes []quality.Change `json:"changes"`
}

// Upstream is one row of the fleet's table.
type Upstream struct {
	pool.State
	// Mode is unknown, flat, growing or losing.
	Mode quality.Mode `json:"mode"`
	// MinuteJobs is how many jobs ended there in the last minute, and MinuteLost how
	// many of them in part or without a response.
	MinuteJobs uint64 `json:"minute_jobs"`
	MinuteLost uint64 `json:"minute_lost"`
}

// Project is one of the busiest projects.
type Project struct {
	// Name is the project's identifier.
	Name string `json:"name"`
	// Jobs is how many it had in the last five to ten minutes.
	Jobs int `json:"jobs"`
	dispatch.ProjectLoad
	// Cached are the upstreams that have its data, Assumed those that are taken to.
	Cached  []string `json:"cached"`
	Assumed []string `json:"assumed"`
}

// Unread is the jobs whose body was passed on without what it says of priority and project.
type Unread struct {
	// Jobs is how many there were since the start, and At when the last one ended.
	Jobs uint64    `json:"jobs"`
	At   time.Time `json:"at"`
	// Why is why the last one was not read.
	Why string `json:"why"`
}

// Failure is a job that failed lately.
type Failure struct {
	// At is when it ended.
	At time.Time `json:"at"`
	// ID, Session, Project and Priority are the job's, as in its log line.
	ID       string `json:"id"`
	Session  string `json:"session,omitempty"`
	Project  string `json:"project,omitempty"`
	Priority string `json:"priority"`
	// Outcome is how it ended, and Status what its submitter was answered. Reason is
	// the word for an answer of pilotfish's own, and Error what went wrong.
	Outcome string `json:"outcome"`
	Status  int    `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Error   string `json:"error,omitempty"`
	// Upstreams are those tried.
	Upstreams []string `json:"upstreams"`
	// Seconds is the time from its arrival to its end.
	Seconds float64 `json:"seconds"`
}

// About is what does not change while the process runs, and the configuration.
type About struct {
	// Version is pilotfish's, and Go that of the Go that built it.
	Version string `json:"version"`
	Go      string `json:"go"`
	// Started is when the process did.
	Started time.Time `json:"started"`
	// Write is set where upstreams may be drained by hand.
	Write bool `json:"write"`
	// Configuration is what is in effect, as YAML, without passwords.
	Configuration string `json:"configuration"`
}

const (
	// eventsEvery is the time between two events.
	eventsEvery = 2 * time.Second
	// eventTimeout is how long a browser may take no byte of an event.
	eventTimeout = 10 * time.Second
	// maxViewers bounds the pages that are open; each takes a connection.
	maxViewers = 16
)

// events sends the state of the moment every two seconds, as server-sent events.
func events(now func() Now) http.HandlerFunc {
	var viewers atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if viewers.Add(1) > maxViewers {
			viewers.Add(-1)
			w.Header().Set("Retry-After", "10")
			http.Error(w, fmt.Sprintf("%d pages are open already; close one", maxViewers), http.StatusServiceUnavailable)
			return
		}
		defer viewers.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		control := http.NewResponseController(w)
		ticker := time.NewTicker(eventsEvery)
		defer ticker.Stop()
		for {
			if err := send(w, control, now()); err != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-ticker.C:
			}
		}
	}
}

// send writes one event.
func send(w http.ResponseWriter, control *http.ResponseController, now Now) error {
	_ = control.SetWriteDeadline(time.Now().Add(eventTimeout)) // not every writer has deadlines
	name := "now"
	text, err := json.Marshal(now)
	if err != nil { // NaN and infinity have no JSON
		name = "problem"
		if text, err = json.Marshal(err.Error()); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text); err != nil {
		return err
	}
	return control.Flush()
}
