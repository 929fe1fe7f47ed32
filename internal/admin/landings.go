package admin

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// At most one landing per landingPause is stored: an even sample of a busy sidecar's jobs, which a page can display.
const (
	keptLandings = 64
	keptProjects = 32
	landingPause = 40 * time.Millisecond
)

// Landing is a recently ended job.
type Landing struct {
	// Number is the sequence number of the landing since the start of the process, from 1.
	Number uint64 `json:"number"`
	// Project is the job's; "" is none.
	Project string `json:"project"`
	// Upstream is where it ran, and Found whether it had a cache hit there.
	Upstream string `json:"upstream"`
	Found    bool   `json:"found"`
	// Seconds is the time from its arrival to its end.
	Seconds float64 `json:"seconds"`
	// From is the upstream of the previous attempt. Moved is set if the job was moved from there while it waited;
	// otherwise it was retried.
	From  string `json:"from,omitempty"`
	Moved bool   `json:"moved,omitempty"`
}

// Holding is a project of the last landings, and the upstreams that cache its data.
type Holding struct {
	// Project is its identifier.
	Project string `json:"project"`
	// Upstreams are the addresses of the upstreams that cache its data, listed or assumed.
	Upstreams []string `json:"upstreams"`
}

// project is a project with a recent landing.
type project struct {
	name string
	key  uint64
}

// Landings is a sample of the last jobs that ended with a response, and their projects. It is not safe for concurrent use.
type Landings struct {
	last     []Landing // the latest last
	at       time.Time // time of the latest landing
	projects []project // the most recently used is last
}

// Ended records a job that ended at now. It skips a job that ends less than landingPause after the last landing, and
// one for which it is unknown whether it had a cache hit.
func (l *Landings) Ended(now time.Time, r *record.Job) {
	found, ok := r.Found()
	if !ok || now.Sub(l.at) < landingPause {
		return
	}
	next := Landing{Number: 1, Project: r.Facts.Project, Upstream: r.Attempt().Upstream, Found: found, Seconds: r.Total.Seconds()}
	if n := len(l.last); n > 0 {
		next.Number = l.last[n-1].Number + 1
	}
	if n := len(r.Attempts); n > 1 {
		next.From, next.Moved = r.Attempts[n-2].Upstream, r.Attempts[n-2].Outcome == pool.Moved
	}
	l.at, l.last = now, append(l.last, next)
	l.last = slices.Delete(l.last, 0, max(0, len(l.last)-keptLandings))
	if r.Facts.Data != nil { // a set of projects or a prompt: the pool knows where its parts are cached, not the whole
		return
	}
	p := project{r.Facts.Project, r.Facts.Key}
	l.projects = append(slices.DeleteFunc(l.projects, func(other project) bool { return other == p }), p)
	l.projects = slices.Delete(l.projects, 0, max(0, len(l.projects)-keptProjects))
}

// Last returns the landings, the oldest first.
func (l *Landings) Last() []Landing { return append([]Landing{}, l.last...) }

// Keys returns the keys of the projects with recent landings.
func (l *Landings) Keys() (keys []uint64) {
	for _, p := range l.projects {
		keys = append(keys, p.key)
	}
	return keys
}

// Holdings returns the holdings of these projects: holders has the addresses for each key.
func (l *Landings) Holdings(holders map[uint64][]string) []Holding {
	list := []Holding{}
	for _, p := range l.projects {
		if addresses := holders[p.key]; len(addresses) > 0 {
			list = append(list, Holding{p.name, addresses})
		}
	}
	return list
}
