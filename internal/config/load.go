package config

import "errors"

// Load reads a configuration file over the defaults and checks it. All that
// is wrong with its values is reported, joined; of a file that is not YAML or
// has unknown keys, the first fault.
func Load(path string) (Config, error) { return LoadOver(path, func(*Config) {}) }

// LoadOver is Load with a change laid over what the file says, before it is
// checked: what a command line overrides need not be right in the file.
func LoadOver(path string, overlay func(*Config)) (Config, error) {
	d, err := Open(path)
	if err != nil {
		return Config{}, err
	}
	return parse(d.name, d.text, overlay)
}

func parse(name string, text []byte, overlay func(*Config)) (Config, error) {
	c, d := Default(), NewDocument(name, text)
	if err := d.Decode(&c); err != nil {
		return c, err
	}
	overlay(&c)
	var faults []error
	for _, f := range c.faults() {
		faults = append(faults, d.Fault(f.key, f.text))
	}
	return c, errors.Join(faults...)
}
