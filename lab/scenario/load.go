package scenario

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
)

// Load reads a scenario file. The error joins all that is wrong with it, each
// with its place in the file.
func Load(path string) (*Scenario, error) {
	d, err := cli.Open(path)
	if err != nil {
		return nil, err
	}
	return parse(d, path)
}

// parse is Load once the file was read.
func parse(d cli.Document, path string) (*Scenario, error) {
	s := defaults()
	_, err := d.Decode(&s, func(f *settings.Faults) {
		s.complete(d, path)
		s.check(f)
	})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// complete fills in what depends on other keys.
func (s *Scenario) complete(d cli.Document, path string) {
	s.Name = cmp.Or(s.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	if s.Reference != "" && !filepath.IsAbs(s.Reference) {
		s.Reference = filepath.Join(filepath.Dir(path), s.Reference)
	}
	for i := range s.Runs {
		r := s.newRun()
		d.DecodeKey(fmt.Sprintf("runs[%d]", i), &r)
		r.Reference = cmp.Or(r.Reference, r.Name)
		s.Runs[i] = r
	}
}

// newRun is a run that has left all open.
func (s *Scenario) newRun() Run {
	r := Run{Times: unchanged, Overload: overload.DefaultPolicy, Stalled: overload.DefaultLimit, Fleet: s.Fleet, Sidecars: s.Sidecars}
	if s.Fleet.Restart != nil {
		r.Fleet.Restart = new(*s.Fleet.Restart)
	}
	return r
}
