package config

import (
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/settings"
)

// Flag is a setting of the command line. It is laid over the file's before the
// check, so that what it replaces need not be right in the file.
type Flag struct {
	Name string // --listen
	Key  string // what it sets: listen
	Set  func(*Config)
}

// Load reads a configuration file over the defaults, lays flags over it, and
// checks the result. It returns all faults and warnings in the file's order.
func Load(path string, flags ...Flag) (Config, []*cli.Error, error) {
	d, err := cli.Open(path)
	if err != nil {
		return Config{}, nil, err
	}
	return Parse(d, flags...)
}

// Parse is Load of a document that was read; the zero Document has no key.
func Parse(d cli.Document, flags ...Flag) (Config, []*cli.Error, error) {
	c := Default()
	d.Flags = map[string]string{}
	set := func(f *settings.Faults) {
		for _, flag := range flags {
			flag.Set(&c)
			d.Flags[flag.Key] = flag.Name
		}
		c.Check(f)
	}
	warnings, err := d.Decode(&c, set)
	return c, warnings, err
}
