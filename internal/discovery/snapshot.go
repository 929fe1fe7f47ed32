package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
)

// maxSnapshot bounds the snapshot file, in bytes: 10,000 upstreams take about 2 MB.
const maxSnapshot = 16 << 20

// snapshotStore is the file that keeps the last set over a restart.
type snapshotStore struct {
	path   string
	source string // the name of the source that gave the set
}

// saved is the file's content.
type saved struct {
	Source    string          `json:"source"`
	SavedAt   time.Time       `json:"saved_at"`
	Upstreams []pool.Upstream `json:"upstreams"`
}

// write replaces the file by set, whole or not at all.
func (s *snapshotStore) write(now time.Time, set []pool.Upstream) error {
	data, err := json.Marshal(saved{Source: s.source, SavedAt: now.UTC(), Upstreams: set})
	if err == nil {
		err = files.Write(s.path, data)
	}
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// read returns the upstreams of the file, none if there is no file. A file that
// is not a whole and valid snapshot of this source is an error.
func (s *snapshotStore) read() ([]pool.Upstream, error) {
	data, err := files.Read(s.path, maxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	var got saved
	if err := json.Unmarshal(data, &got); err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", s.path, err)
	}
	if got.Source != s.source {
		return nil, fmt.Errorf("read snapshot %s: it belongs to %s, not to %s", s.path, quote(got.Source), s.source)
	}
	if n := len(got.Upstreams); n > maxUpstreams {
		return nil, fmt.Errorf("read snapshot %s: it has %d upstreams, at most %d are allowed", s.path, n, maxUpstreams)
	}
	for i := range got.Upstreams {
		if err := check(&got.Upstreams[i]); err != nil {
			return nil, fmt.Errorf("read snapshot %s: upstream %d: %w", s.path, i+1, err)
		}
	}
	return got.Upstreams, nil
}
