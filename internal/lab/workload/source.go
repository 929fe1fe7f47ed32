package workload

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// SourcesConfig shapes the pattern sources. Each project is a source that sends
// jobs at its own rate while it is on, and none while it is off. Both times have
// Pareto tails, so that the sum of many sources is bursty at every time scale
// (Willinger et al. 1997). There are no schedules, channels, sessions or shared
// rules, and a job's work does not follow the size of its project.
type SourcesConfig struct {
	// On and Off are the median times for which a source is on and off, in
	// seconds, Index is that of their tails.
	On    float64 `yaml:"on"`
	Off   float64 `yaml:"off"`
	Index float64 `yaml:"index"`
	// Zipf is the exponent of the rates: while they are on, the source of rank
	// r sends 1/r^Zipf times as many jobs as the first.
	Zipf float64 `yaml:"zipf"`
	// Work is the median work of a job in core-seconds, WorkIndex that of its
	// tail. Population.MaxWork bounds it.
	Work      float64 `yaml:"work"`
	WorkIndex float64 `yaml:"work_index"`
	// Bytes is the median size of a project's data, BytesIndex that of its tail.
	// Population.MaxBytes bounds it, and Population.FetchRate makes the fetch.
	Bytes      float64 `yaml:"bytes"`
	BytesIndex float64 `yaml:"bytes_index"`
}

// defaultSources offers about the load of the thesis's day with the same number
// of jobs.
func defaultSources() SourcesConfig {
	return SourcesConfig{
		On: 60, Off: 240, Index: 1.4,
		Zipf: 0.8,
		Work: 0.4, WorkIndex: 0.95,
		Bytes: 8e6, BytesIndex: 0.9,
	}
}

func (c *SourcesConfig) check(f *settings.Faults) {
	f.Between("on", c.On, 1, day)
	f.Between("off", c.Off, 1, day)
	f.Between("index", c.Index, 0.5, 10)
	f.Between("zipf", c.Zipf, 0, 3)
	f.Between("work", c.Work, 0, 1e12)
	f.Between("work_index", c.WorkIndex, 0.5, 10)
	f.Between("bytes", c.Bytes, 1, 1e12)
	f.Between("bytes_index", c.BytesIndex, 0.5, 10)
}

// project draws the project of a rank, counted from 0.
func (c *SourcesConfig) project(rng *rand.Rand, p *PopulationConfig, rank int) projectModel {
	bytes := min(pareto(rng, c.Bytes, c.BytesIndex), p.MaxBytes)
	return projectModel{
		ID:         trace.Project(strconv.Itoa(firstID + rank)),
		Bytes:      max(1, int64(bytes)),
		Load:       rounded(logNormal(rng, bytes/p.FetchRate, p.FetchSpread)),
		Popularity: math.Pow(float64(rank+1), -c.Zipf),
		Period:     day,
		Channels:   []channelModel{{Operators: (1 - p.OutputShare) * c.Work, Output: p.OutputShare * c.Work}},
		view:       c.Work,
	}
}

// toggle is when a source goes on or off.
type toggle struct {
	at     float64
	source int
	on     bool
}

// toggles draws when a source goes on and off, up to the end. It starts
// somewhere within a period.
func (c *SourcesConfig) toggles(rng *rand.Rand, source int, end float64) []toggle {
	on := rng.Float64() < c.On/(c.On+c.Off)
	var all []toggle
	period := func() float64 {
		if on {
			return pareto(rng, c.On, c.Index)
		}
		return pareto(rng, c.Off, c.Index)
	}
	if on {
		all = append(all, toggle{0, source, true})
	}
	for at := rng.Float64() * period(); at < end; at += period() {
		on = !on
		all = append(all, toggle{at, source, on})
	}
	return all
}

// sourceJobs sends the jobs of all sources. The number of jobs up to an instant
// follows the sum of the rates up to it.
type sourceJobs struct {
	rng     *rand.Rand
	shares  instants
	toggles []toggle // that are still to come
	active  weights
	sum     float64 // the sum of the rates over the whole time
	done    float64 // that up to at
	at      float64
}

func (g *Generator) beginSources() error {
	c := &g.cfg.Sources
	rng := rand.New(source(g.cfg.Seed, streamSources, 0))
	s := &sourceJobs{
		rng:    rand.New(source(g.cfg.Seed, streamJobs, 0)),
		shares: instants{rng: rand.New(source(g.cfg.Seed, streamArrivals, 0)), left: g.cfg.Jobs},
		active: newWeights(g.cfg.projects()),
	}
	for i := range g.cfg.projects() {
		g.population = append(g.population, c.project(rng, &g.cfg.Population, i))
		s.toggles = append(s.toggles, c.toggles(rng, i, g.cfg.Duration)...)
	}
	if len(s.toggles) == 0 { // so few and so slow sources that none goes on
		s.toggles = []toggle{{0, 0, true}}
	}
	slices.SortStableFunc(s.toggles, func(a, b toggle) int { return cmp.Compare(a.at, b.at) })
	for _, t := range s.toggles {
		left := g.population[t.source].Popularity * (g.cfg.Duration - t.at)
		if !t.on {
			left = -left
		}
		s.sum += left
	}
	g.queue.push(s.next(g), s)
	return nil
}

// next is when the next job is sent.
func (s *sourceJobs) next(g *Generator) float64 {
	share, ok := s.shares.next()
	if !ok {
		return never
	}
	due := share * s.sum
	for {
		end := g.cfg.Duration
		if len(s.toggles) > 0 {
			end = s.toggles[0].at
		}
		if rate := s.active.sum(); rate > 0 {
			if at := s.at + (due-s.done)/rate; at <= end || len(s.toggles) == 0 {
				s.done, s.at = due, min(at, g.cfg.Duration)
				return s.at
			}
			s.done += rate * (end - s.at)
		}
		if len(s.toggles) == 0 { // a rounding error away from the last job
			return g.cfg.Duration
		}
		s.at = end
		s.turn(g)
	}
}

// turn lets the next source go on or off. One that goes on may have new data.
func (s *sourceJobs) turn(g *Generator) {
	t := s.toggles[0]
	s.toggles = s.toggles[1:]
	rate := 0.0
	if t.on {
		rate = g.population[t.source].Popularity
		if !g.cfg.Static && t.at > 0 && s.rng.Float64() < g.cfg.Schedule.Imports {
			g.population[t.source].imports++
		}
	}
	s.active.set(t.source, rate)
}

func (s *sourceJobs) run(g *Generator, _ float64, job *trace.Job) (bool, float64) {
	c := &g.cfg.Sources
	project := s.active.pick(s.rng)
	g.fill(job, project, s.rng)
	work := min(pareto(s.rng, c.Work, c.WorkIndex), g.cfg.Population.MaxWork)
	output := g.cfg.Population.OutputShare
	job.Operators, job.Output = rounded((1-output)*work), rounded(output*work)
	job.Channel = 1
	job.Priority, job.Timeouts = selection.Low, g.cfg.LowTimeouts
	if s.rng.Float64() < g.cfg.HighShare {
		job.Priority, job.Timeouts = selection.High, g.cfg.HighTimeouts
	}
	return true, s.next(g)
}
