package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// snapshot is the file that keeps the last set across restarts.
type snapshot struct {
	path string
	// Source is the name of the source of the set.
	Source    string          `json:"source"`
	Upstreams []pool.Upstream `json:"upstreams"`
}

// write replaces the file by set, atomically.
func (s *snapshot) write(set []pool.Upstream) error {
	text, err := json.MarshalIndent(snapshot{Source: s.Source, Upstreams: set}, "", " ")
	if err == nil {
		err = files.Write(s.path, text)
	}
	if err != nil {
		return fmt.Errorf("the snapshot cannot be written: %w", err)
	}
	return nil
}

// read returns the upstreams in the file. A missing file has none. A file that
// is not a valid snapshot of this source is an error.
func (s *snapshot) read() ([]pool.Upstream, error) {
	text, err := readFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot %w", err)
	}
	var last snapshot
	if err := json.Unmarshal(text, &last); err != nil {
		return nil, fmt.Errorf("the snapshot %s: %w", s.path, err)
	}
	if n := len(last.Upstreams); last.Source != s.Source || n > maxUpstreams {
		return nil, fmt.Errorf("the snapshot %s has %d upstreams of %s", s.path, n, settings.Quote(last.Source))
	}
	for i := range last.Upstreams {
		u := &last.Upstreams[i]
		if u.Address, err = settings.Address(u.Address); err == nil && !(u.Weight >= 0 && u.Weight <= maxWeight && u.Cores >= 0 && u.Cores <= maxCores) {
			err = fmt.Errorf("%s has weight %g and %d cores: want 0 to %g and 0 to %d", u.Address, u.Weight, u.Cores, maxWeight, maxCores)
		}
		if err != nil {
			return nil, fmt.Errorf("the snapshot %s: %w", s.path, err)
		}
	}
	return last.Upstreams, nil
}
