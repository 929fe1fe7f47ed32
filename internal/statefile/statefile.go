// Package statefile keeps over a restart what a sidecar has learned.
package statefile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "state" of a configuration file.
type Settings struct {
	// Path is the file, written each minute and at the end; "" keeps nothing.
	Path string `yaml:"path"`
	// MaxAge is from which age on a file is ignored at the start.
	MaxAge time.Duration `yaml:"max_age"`
}

// Default is the settings of an empty file.
func Default() Settings { return Settings{MaxAge: time.Hour} }

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) { f.Positive("max_age", s.MaxAge) }

const (
	// maxBytes bounds the state file, in bytes: what it may hold takes about 1 MB.
	maxBytes = 8 << 20
	// saveEvery is how often the state file is written.
	saveEvery = time.Minute
	// version changes with what the figures mean.
	version = 1
)

// saved is the content of the state file.
type saved struct {
	Version int             `json:"version"`
	SavedAt time.Time       `json:"saved_at"`
	Sum     string          `json:"sha256"` // of Learned
	Learned json.RawMessage `json:"learned"`
}

// write writes what was learned up to now.
func write(path string, now time.Time, l pool.Learned) error {
	learned, err := json.Marshal(l)
	if err != nil {
		return err
	}
	text, err := json.Marshal(saved{version, now.UTC(), sum(learned), learned})
	if err != nil {
		return err
	}
	return files.Write(path, text)
}

// read reads what was learned, unless it is older than maxAge or damaged. There
// is nothing if there is no file.
func read(path string, now time.Time, maxAge time.Duration) (l pool.Learned, age time.Duration, err error) {
	text, err := files.Read(path, maxBytes)
	if err != nil {
		return l, 0, err
	}
	var s saved
	if err := json.Unmarshal(text, &s); err != nil {
		return l, 0, fmt.Errorf("it is damaged: %w", err)
	}
	age = now.Sub(s.SavedAt)
	switch {
	case s.Version != version:
		return l, age, fmt.Errorf("it is of version %d, not %d", s.Version, version)
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

// Learner is what has learned, and can begin with what another has.
type Learner interface {
	Learned() pool.Learned
	Restore(l pool.Learned) error
}

// Restore makes a learner begin with what was learned before a restart. A file
// that cannot be used is told and ignored: the sidecar learns anew.
func Restore(s Settings, into Learner, log *zap.Logger) {
	if s.Path == "" {
		return
	}
	learned, age, err := read(s.Path, time.Now(), s.MaxAge)
	if err == nil {
		err = into.Restore(learned)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first start
	case err != nil:
		log.Warn("the state file is ignored: what was learned before is learned anew", zap.String("path", s.Path), zap.Error(err))
	default:
		log.Info("the sidecar begins with what was learned before", zap.String("path", s.Path),
			zap.Duration("age", age), zap.Int("upstreams", len(learned.Upstreams)))
	}
}

// Keep writes the state file each minute and when ctx ends. path says where it is at
// the moment; "" is nowhere. A failure is told once.
func Keep(ctx context.Context, path func() string, from Learner, log *zap.Logger) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	failed := false
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		path := path()
		if path == "" {
			continue
		}
		err := write(path, time.Now(), from.Learned())
		if err != nil && !failed {
			log.Warn("the state file cannot be written: a restart learns anew", zap.String("path", path), zap.Error(err))
		}
		failed = err != nil
	}
}
