package scenario

import (
	"errors"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/settings"
)

// Load reads a scenario file, with every default in place. The error joins all
// that is wrong with the values. If the file is not YAML or has unknown keys,
// the error is the first such fault.
func Load(path string) (*Scenario, error) {
	d, err := cli.Open(path)
	if err != nil {
		return nil, err
	}
	return parse(d, path)
}

// parse is Load once the file was read.
func parse(d cli.Document, path string) (*Scenario, error) {
	var s Scenario
	if _, err := d.Decode(&s, func(*settings.Faults) {}); err != nil {
		return nil, err
	}
	s.resolve(path)
	f := faults{in: d}
	f.scenario(&s)
	if len(f.found) > 0 {
		return nil, errors.Join(f.found...)
	}
	return &s, nil
}

// resolve puts the defaults in, and finds the files that the scenario names.
func (s *Scenario) resolve(path string) {
	orDefault(&s.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	orDefault(&s.Seed, 1)
	orDefault(&s.Seeds, 1)
	orDefault(&s.Sample, defaultSample)
	for _, file := range []*string{&s.Trace, &s.Reference.Results, &s.Reference.Variance} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(filepath.Dir(path), *file)
		}
	}
	s.Fleet.over(defaultFleet())
	s.Sidecars.over(defaultSidecars())
	for i := range s.Runs {
		r := &s.Runs[i]
		orDefault(&r.Overload, "none")
		orDefault(&r.Stalled, 100)
		orDefault(&r.Reference, r.Name)
		r.Fleet.over(s.Fleet)
		r.Sidecars.over(s.Sidecars)
	}
	if len(s.Runs) > 0 {
		orDefault(&s.Base, s.Runs[0].Name)
	}
	for i := range s.Runs {
		orDefault(&s.Runs[i].Against, s.Base)
	}
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
