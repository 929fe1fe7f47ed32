package pool

import (
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// maxKept bounds the projects of each kind in Learned, and the upstreams.
	maxKept = 4096
	// maxLooked bounds the projects that are looked at: jobs wait meanwhile.
	maxLooked = 2 * maxKept
)

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
		Fetches: p.fetches.learned(), Answers: p.answers.learned(), Sizes: map[uint64]float64{},
		Startup: p.sizes.startup, PerByte: p.sizes.perByte, Upstreams: map[string]LearnedUpstream{},
	}
	looked := 0
	for s := range p.projects.all {
		if looked++; looked > maxLooked {
			break
		}
		l.Fetches.add(s.id, s.fetches)
		l.Answers.add(s.id, s.answers)
		if s.listed > 0 && len(l.Sizes) < maxKept {
			l.Sizes[s.id] = s.listed
		}
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
	p.fetches.all, p.answers.all = meanOf(l.Fetches.All), meanOf(l.Answers.All)
	p.sizes.startup, p.sizes.perByte = l.Startup, l.PerByte
	for project, m := range l.Fetches.Projects {
		p.projects.of(project).fetches = meanOf(m)
	}
	for project, m := range l.Answers.Projects {
		p.projects.of(project).answers = meanOf(m)
	}
	for project, bytes := range l.Sizes {
		p.projects.of(project).listed = bytes
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
	return Durations{All: [2]float64{f.all.mean, f.all.n}, Projects: map[uint64][2]float64{}}
}

// add adds the mean of a project, if there is one, and room for it.
func (d Durations) add(project uint64, m logMean) {
	if m.n > 0 && len(d.Projects) < maxKept {
		d.Projects[project] = [2]float64{m.mean, m.n}
	}
}

func meanOf(kept [2]float64) logMean { return logMean{mean: kept[0], n: kept[1]} }

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
