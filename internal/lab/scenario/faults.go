package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/pkg/overload"
)

// The largest numbers that make sense; they bound memory.
const (
	maxUpstreams = 10_000
	maxCores     = 1 << 16
	maxSidecars  = 100_000
	maxSeeds     = 1000
	maxRuns      = 1000
	// maxFaults bounds what is told at once.
	maxFaults = 20
)

// faults gathers what is wrong with a scenario.
type faults struct {
	in    cli.Document
	found []error
}

// add notes a fault of a key; one that the file does not hold has the place
// of what it would stand in.
func (f *faults) add(key, format string, args ...any) {
	if len(f.found) == maxFaults {
		return
	}
	fault := f.in.Fault(key, fmt.Sprintf(format, args...))
	for outer := key; fault.Line == 0; {
		end := strings.LastIndexAny(outer, ".[")
		if end < 0 {
			break
		}
		outer = outer[:end]
		at := f.in.Fault(outer, "")
		fault.Line, fault.Column = at.Line, at.Column
	}
	f.found = append(f.found, fault)
}

func (f *faults) scenario(s *Scenario) {
	f.within("seeds", s.Seeds, 1, maxSeeds)
	f.positive("sample", s.Sample)
	if s.End < 0 {
		f.add("end", "%v must not be negative", s.End)
	}
	if s.Trace != "" && s.Workload != nil {
		f.add("trace", "either a trace or a workload says what the jobs are, not both")
	}
	s.jobs = f.jobs("workload", s.Workload)
	s.jobs.trace = s.Trace
	f.fleet("fleet", &s.Fleet)
	f.sidecars("sidecars", &s.Sidecars)
	if len(s.Runs) == 0 {
		f.add("runs", "there is no run")
	}
	if len(s.Runs) > maxRuns {
		f.add("runs", "%d runs are more than %d", len(s.Runs), maxRuns)
	}
	if len(s.Runs) > 0 && !slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Name == s.Base }) {
		f.add("base", "there is no run %q", s.Base)
	}
	for i := range s.Runs {
		f.run(fmt.Sprintf("runs[%d]", i), s, i)
	}
}

func (f *faults) run(key string, s *Scenario, i int) {
	r := &s.Runs[i]
	same := func(other Run) bool { return other.Name == r.Name }
	switch {
	case r.Name == "":
		f.add(key+".name", "a name is required")
	case slices.IndexFunc(s.Runs, same) < i:
		f.add(key+".name", "%q is there twice", r.Name)
	}
	if r.Against != s.Base && !slices.ContainsFunc(s.Runs, func(other Run) bool { return other.Name == r.Against }) {
		f.add(key+".against", "there is no run %q", r.Against)
	}
	f.oneOf(key+".overload", r.Overload, overload.Names())
	if !(r.Stalled > 0) {
		f.add(key+".stalled", "%v must be positive", r.Stalled)
	}
	f.oneOf(key+".policy", r.Policy, policies())
	for n, name := range r.Expected.Off {
		if _, ok := part(name); !ok {
			f.add(fmt.Sprintf("%s.expected.off[%d]", key, n), "%q is not one of %s", name, strings.Join(parts(), ", "))
		}
	}
	if len(r.Expected.Off) > 0 && r.Policy != "expected" {
		f.add(key+".expected", "is for the policy expected, not for %s", r.Policy)
	}
	if r.Dagor.IgnoreWait && r.Overload != "dagor" {
		f.add(key+".dagor", "is for the overload policy dagor, not for %s", r.Overload)
	}
	r.jobs = s.jobs
	if r.Workload != nil {
		var over workload.Config
		if s.Workload != nil {
			over = *s.Workload
		}
		if err := f.in.DecodeKey(key+".workload", &over); err != nil {
			f.found = append(f.found, err)
		}
		r.jobs = f.jobs(key+".workload", &over)
	}
	// What a run leaves open was looked at before.
	if r.Fleet != s.Fleet {
		f.fleet(key+".fleet", &r.Fleet)
	}
	if r.Sidecars != s.Sidecars {
		f.sidecars(key+".sidecars", &r.Sidecars)
	}
}

func (f *faults) fleet(key string, v *fleet) {
	f.within(key+".upstreams", v.Upstreams, 1, maxUpstreams)
	f.within(key+".cores", v.Cores, 1, maxCores)
	f.within(key+".backlog", v.Backlog, 0, 1<<30)
	if p := v.Preemption; p != nil {
		key += ".preemption"
		f.within(key+".upstreams", p.Upstreams, 1, v.Upstreams)
		if !(p.Early >= 0 && p.Early <= 1) {
			f.add(key+".early", "%v is not a share from 0 to 1", p.Early)
		}
		f.positive(key+".notice", p.Notice)
		f.positive(key+".away_min", p.AwayMin)
		f.positive(key+".discovery", p.Discovery)
		if p.Life <= p.Notice {
			f.add(key+".life", "%v is not longer than the notice, %v", p.Life, p.Notice)
		}
		if p.AwayMax < p.AwayMin {
			f.add(key+".away_max", "%v is less than away_min, %v", p.AwayMax, p.AwayMin)
		}
	}
}

func (f *faults) sidecars(key string, v *sidecars) {
	f.within(key+".count", v.Count, 1, maxSidecars)
	f.positive(key+".interval", v.Interval)
	f.within(key+".attempts", v.Attempts, 1, 100)
	f.positive(key+".wait", v.Wait)
	if v.Freeze.At < 0 {
		f.add(key+".freeze.at", "%v must not be negative", v.Freeze.At)
	}
	if v.Freeze.For < 0 {
		f.add(key+".freeze.for", "%v must not be negative", v.Freeze.For)
	}
}

// jobs resolves a workload.
func (f *faults) jobs(key string, given *workload.Config) jobs {
	var c workload.Config
	if given != nil {
		c = *given
	}
	if c.Seed != 0 {
		f.add(key+".seed", "the scenario's seed is that of its workload too")
	}
	c, err := c.Resolve()
	if err != nil {
		// It names the field first, as a file would.
		field, text, _ := strings.Cut(strings.TrimPrefix(err.Error(), "workload: "), ": ")
		f.add(key+"."+field, "%s", text)
	}
	return jobs{workload: c}
}

func (f *faults) within(key string, n, least, most int) {
	if n < least || n > most {
		f.add(key, "%d is not between %d and %d", n, least, most)
	}
}

func (f *faults) positive(key string, d time.Duration) {
	if d <= 0 {
		f.add(key, "%v must be positive", d)
	}
}

func (f *faults) oneOf(key, word string, words []string) {
	if !slices.Contains(words, word) {
		f.add(key, "%q is not one of %s", word, strings.Join(words, ", "))
	}
}
