package main

import (
	"os"
	"path/filepath"
)

// marker is a file that exists while the process runs. If it exists at the start, the previous process was killed
// or crashed. The zero value is no file.
type marker struct{ path string }

// begin creates the file in systemd's state directory, and reports whether the previous process shut down normally;
// nil without such a directory.
func (m *marker) begin(stateDirectory string) (planned *bool, err error) {
	if stateDirectory == "" {
		return nil, nil
	}
	m.path = filepath.Join(filepath.SplitList(stateDirectory)[0], "running")
	_, missing := os.Stat(m.path)
	return new(os.IsNotExist(missing)), os.WriteFile(m.path, nil, 0o600)
}

// end removes the file: the process shuts down normally.
func (m *marker) end() error {
	if m.path == "" {
		return nil
	}
	return os.Remove(m.path)
}
