package pool

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// maxKept bounds the projects of each kind in Learned, and the upstreams.
const maxKept = 4096

// Learned is what a pool has learned, in a form that outlives the process. What
// upstreams report anew within seconds is not in it, and nothing of open jobs.
type Learned struct {
	// Fetches and Answers are how long fetches take, and answers to begin where the
	// data is cached. Sizes are those of projects' data, in bytes, by project.
	Fetches Durations          `json:"fetches"`
	Answers Durations          `json:"answers"`
	Sizes   map[uint64]float64 `json:"sizes"`
	// Startup and PerByte are what a fetch takes whose size is known, in seconds.
	Startup float64 `json:"startup"`
	PerByte float64 `json:"per_byte"`
	// Upstreams are by address.
	Upstreams map[string]LearnedUpstream `json:"upstreams"`
}

// Durations are means of logarithms of seconds, each with the number of its observations.
type Durations struct {
	All      [2]float64            `json:"all"`
	Projects map[uint64][2]float64 `json:"projects"`
}

// LearnedUpstream is what was learned of one upstream. It is of no use if the
// upstream has restarted since.
type LearnedUpstream struct {
	StartedAt   time.Time `json:"started_at,omitzero"`
	FetchFactor float64   `json:"fetch_factor"`
	// Done and Busy are completions and core-seconds up to At, when the upstream had
	// completed Completed jobs and CoresBusy of its cores were busy.
	Done      float64   `json:"done"`
	Busy      float64   `json:"busy"`
	At        time.Time `json:"at,omitzero"`
	Completed float64   `json:"completed"`
	CoresBusy float64   `json:"cores_busy"`
}

// Learned copies what was learned. Where there is more than maxKept, what was not
// touched lately is left out, and beyond that anything.
func (p *Pool) Learned() Learned {
	l := Learned{
		Fetches: p.fetches.learned(), Answers: p.answers.learned(), Sizes: latest(p.sizes.sizes),
		Startup: p.sizes.startup, PerByte: p.sizes.perByte, Upstreams: map[string]LearnedUpstream{},
	}
	for _, m := range p.set[:min(len(p.set), maxKept)] {
		l.Upstreams[m.Address] = LearnedUpstream{
			StartedAt: m.StartedAt, FetchFactor: m.fetchFactor,
			Done: m.rate.done, Busy: m.rate.busy, At: m.rate.at, Completed: m.rate.lastCompleted, CoresBusy: m.rate.lastBusy,
		}
	}
	return l
}

// Restore makes an empty pool begin with what another had learned. Upstreams get
// their part when they join, unless they tell that they have restarted. What cannot
// be true is refused as a whole.
func (p *Pool) Restore(now time.Time, l Learned) error {
	if err := l.check(now); err != nil {
		return err
	}
	p.fetches.restore(l.Fetches)
	p.answers.restore(l.Answers)
	p.sizes.startup, p.sizes.perByte = l.Startup, l.PerByte
	for project, bytes := range l.Sizes {
		p.sizes.sizes.put(project, bytes)
	}
	p.restored = l.Upstreams
	return nil
}

// recall gives an upstream that joins what was learned of it before.
func (p *Pool) recall(m *member) {
	l, ok := p.restored[m.Address]
	if !ok {
		return
	}
	delete(p.restored, m.Address)
	if !l.StartedAt.Equal(m.StartedAt) {
		return
	}
	m.fetchFactor = l.FetchFactor
	m.rate = rate{done: l.Done, busy: l.Busy, at: l.At, lastCompleted: l.Completed, lastBusy: l.CoresBusy}
}

func (f *durations) learned() Durations {
	d := Durations{All: [2]float64{f.all.mean, f.all.n}, Projects: map[uint64][2]float64{}}
	for project, m := range latest(f.projects) {
		d.Projects[project] = [2]float64{m.mean, m.n}
	}
	return d
}

func (f *durations) restore(d Durations) {
	f.all = logMean{mean: d.All[0], n: d.All[1]}
	for project, m := range d.Projects {
		f.projects.put(project, logMean{mean: m[0], n: m[1]})
	}
}

// latest copies at most maxKept of the entries, those touched lately first.
func latest[V any](g *generations[V]) map[uint64]V {
	some := make(map[uint64]V, min(g.len(), maxKept))
	for _, half := range []map[uint64]V{g.young, g.old} {
		for key, v := range half {
			if len(some) == maxKept {
				return some
			}
			some[key] = v
		}
	}
	return some
}

// check refuses figures that no pool could have learned.
func (l Learned) check(now time.Time) error {
	if n := max(len(l.Fetches.Projects), len(l.Answers.Projects), len(l.Sizes), len(l.Upstreams)); n > maxKept {
		return fmt.Errorf("%d entries of one kind are more than %d", n, maxKept)
	}
	const most = 1e15
	within := func(x, least, most float64) bool { return x >= least && x <= most } // false for NaN
	ok := within(l.Startup, startupLeast, startupMost) && within(l.PerByte, perByteLeast, perByteMost)
	for _, d := range []Durations{l.Fetches, l.Answers} {
		means := [][2]float64{d.All}
		for _, m := range d.Projects {
			means = append(means, m)
		}
		for _, m := range means {
			ok = ok && math.Abs(m[0]) <= math.Log(most) && within(m[1], 1, most)
		}
	}
	for _, bytes := range l.Sizes {
		ok = ok && within(bytes, 0, most)
	}
	for _, u := range l.Upstreams {
		ok = ok && within(u.FetchFactor, 0.5, 3) && within(u.Done, 0, most) && within(u.Busy, 0, most) &&
			within(u.Completed, 0, most) && within(u.CoresBusy, 0, most) && !u.At.After(now)
	}
	if !ok {
		return errors.New("a figure is not one that can have been learned")
	}
	return nil
}
