package scenario

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/settings"
)

// rivalsFile is the file, beside the families, whose runs every family has.
const rivalsFile = "rivals.yaml"

// Families are the scenarios on which a run is judged, and what is played of them.
type Families struct {
	labs []*Lab
	jobs int64 // of all
	// playing is the lab that plays now, before is the jobs of those that have
	// played.
	playing atomic.Pointer[Lab]
	before  atomic.Int64
}

// NewFamilies plans the trials of all families that are chosen.
func NewFamilies(families []*Scenario, c Choice) (*Families, error) {
	f := &Families{}
	for _, s := range families {
		runs, err := s.Choose(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		l := NewLab(s, runs)
		f.labs = append(f.labs, l)
		f.jobs += l.jobs
	}
	return f, nil
}

// Done is the share of the jobs that were sent. It may be called while they play.
func (f *Families) Done() float64 {
	sent := f.before.Load()
	if l := f.playing.Load(); l != nil {
		sent += l.done.Load()
	}
	return float64(sent) / float64(f.jobs)
}

// Play plays one family after the other, several trials at a time, and calls ended
// after each family. When ctx ends, it returns the verdicts on the families that were
// done, and cli.ErrInterrupted.
func (f *Families) Play(ctx context.Context, parallel int, ended func(results.Verdict)) ([]results.Verdict, error) {
	var verdicts []results.Verdict
	for i, l := range f.labs {
		f.playing.Store(l)
		set, err := l.Play(ctx, parallel, func(*Trial) {})
		switch {
		case errors.Is(err, cli.ErrInterrupted):
			return verdicts, fmt.Errorf("%w: these are the %d of %d families that were done", cli.ErrInterrupted, i, len(f.labs))
		case err != nil:
			return nil, fmt.Errorf("%s: %w", l.scenario.Name, err)
		}
		f.playing.Store(nil)
		f.before.Add(l.jobs)
		f.labs[i] = nil // what it has counted is of no use any more
		v := results.Judge(&set)
		ended(v)
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// LoadFamilies reads the families of a folder, in order of their names: each
// file but rivals.yaml is one. A family says what the jobs, the upstreams and
// the sidecars are like; rivals.yaml has the runs, and the first is the one to be
// judged. only names families; without any, all are read.
func LoadFamilies(dir string, only []string) ([]*Scenario, error) {
	runs, err := cli.Open(filepath.Join(dir, rivalsFile))
	if err != nil {
		return nil, err
	}
	if _, err := parse(runs, runs.Name()); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(path string) bool { return filepath.Base(path) == rivalsFile })
	var names []string
	for _, path := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".yaml"))
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--family %q: the families are %s", name, strings.Join(names, ", "))
		}
	}
	var families []*Scenario
	var faults []error
	for i, path := range files {
		if len(only) > 0 && !slices.Contains(only, names[i]) {
			continue
		}
		s, err := loadFamily(path, runs)
		families, faults = append(families, s), append(faults, err)
	}
	if len(families) == 0 {
		return nil, fmt.Errorf("%s: there is no family, a *.yaml file beside %s", dir, rivalsFile)
	}
	return families, errors.Join(faults...)
}

// loadFamily reads a family, and gives it the runs of another file.
func loadFamily(path string, runs cli.Document) (*Scenario, error) {
	d, err := cli.Open(path)
	if err != nil {
		return nil, err
	}
	s := defaults()
	_, err = d.Decode(&s, func(f *settings.Faults) {
		if len(s.Runs) > 0 {
			f.Add("runs", "a family has none of its own: those of %s are played", rivalsFile)
			return
		}
		_ = runs.DecodeKey("runs", &s.Runs) // its faults were found before
		s.complete(runs, path)
		s.check(f)
	})
	if err != nil {
		return nil, err
	}
	return &s, nil
}
