package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
		err = replace(s.path, data)
	}
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// replace writes a new file beside path, readable by its owner alone, and renames it.
func replace(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // err already says what failed
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
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
