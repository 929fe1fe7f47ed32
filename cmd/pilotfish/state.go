package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
)

const (
	// maxState bounds the state file, in bytes: what it may hold takes about 1 MB.
	maxState = 8 << 20
	// saveEvery is how often the state file is written.
	saveEvery = time.Minute
	// stateVersion changes with what the figures mean.
	stateVersion = 1
)

// savedState is the content of the state file.
type savedState struct {
	Version int             `json:"version"`
	SavedAt time.Time       `json:"saved_at"`
	Sum     string          `json:"sha256"` // of Learned
	Learned json.RawMessage `json:"learned"`
}

// writeState writes what was learned up to now.
func writeState(path string, now time.Time, l pool.Learned) error {
	learned, err := json.Marshal(l)
	if err != nil {
		return err
	}
	text, err := json.Marshal(savedState{stateVersion, now.UTC(), sum(learned), learned})
	if err != nil {
		return err
	}
	return files.Write(path, text)
}

// readState reads what was learned, unless it is older than maxAge or damaged. There
// is nothing if there is no file.
func readState(path string, now time.Time, maxAge time.Duration) (l pool.Learned, age time.Duration, err error) {
	text, err := files.Read(path, maxState)
	if err != nil {
		return l, 0, err
	}
	var s savedState
	if err := json.Unmarshal(text, &s); err != nil {
		return l, 0, fmt.Errorf("it is damaged: %w", err)
	}
	age = now.Sub(s.SavedAt)
	switch {
	case s.Version != stateVersion:
		return l, age, fmt.Errorf("it is of version %d, not %d", s.Version, stateVersion)
	case s.Sum != sum(s.Learned):
		return l, age, errors.New("it is damaged: its checksum is wrong")
	case age < 0:
		return l, age, fmt.Errorf("it was written in the future, at %v", s.SavedAt)
	case age > maxAge:
		return l, age, fmt.Errorf("it is %v old, more than state.max_age, %v", age.Round(time.Second), maxAge)
	}
	if err := json.Unmarshal(s.Learned, &l); err != nil {
		return l, age, fmt.Errorf("it is damaged: %w", err)
	}
	return l, age, nil
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// restoreState makes the pool begin with what was learned before a restart. A file
// that cannot be used is told and ignored: the sidecar learns anew.
func (s *sidecar) restoreState(c config.State) {
	if c.Path == "" {
		return
	}
	learned, age, err := readState(c.Path, time.Now(), c.MaxAge)
	if err == nil {
		err = s.balancer.Restore(learned)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first start
	case err != nil:
		s.log.Warn("the state file is ignored: what was learned before is learned anew", zap.String("path", c.Path), zap.Error(err))
	default:
		s.log.Info("the sidecar begins with what was learned before", zap.String("path", c.Path),
			zap.Duration("age", age), zap.Int("upstreams", len(learned.Upstreams)))
	}
}

// keepState writes the state file each minute and when ctx ends.
func (s *sidecar) keepState(ctx context.Context) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	failed := ""
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		path := s.current.Load().cfg.State.Path
		if path == "" {
			continue
		}
		err := writeState(path, time.Now(), s.balancer.Learned())
		if err != nil && err.Error() != failed {
			s.log.Warn("the state file cannot be written: a restart learns anew", zap.String("path", path), zap.Error(err))
		}
		if failed = ""; err != nil {
			failed = err.Error()
		}
	}
}
