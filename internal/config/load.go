package config

import (
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/settings"
)

// Load reads a configuration file over the defaults and checks it. All that
// is wrong with its values is reported, joined; of a file that is not YAML or
// has unknown keys, the first fault.
func Load(path string) (Config, error) { return LoadOver(path, func(*Config) {}) }

// LoadOver is Load with a change laid over what the file says, before it is
// checked: what a command line overrides need not be right in the file.
func LoadOver(path string, overlay func(*Config)) (Config, error) {
	d, err := cli.Open(path)
	if err != nil {
		return Config{}, err
	}
	return parse(d, overlay)
}

func parse(d cli.Document, overlay func(*Config)) (Config, error) {
	c := Default()
	if err := d.Decode(&c); err != nil {
		return c, err
	}
	overlay(&c)
	var f settings.Faults
	c.check(&f)
	return c, d.Place(&f)
}
