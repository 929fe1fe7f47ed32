package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/pool"
)

const (
	// DefaultFileInterval is how often a file is read.
	DefaultFileInterval = 2 * time.Second
	// maxFile bounds the file, in bytes.
	maxFile = 4 << 20
)

// FileConfig says which file lists the upstreams: one to a line, or as a JSON list.
type FileConfig struct {
	Path string
	// Interval is how often it is read; default 2 s, at least 1 s.
	Interval time.Duration
}

// file is a list in a file. The file is read whole each time, because lists are
// small, and neither times nor inodes tell reliably that one changed, whether it is edited in place,
// renamed over or reached through a link. A change is taken once two reads in
// a row agree, so that a file in the middle of being written is not.
type file struct {
	path     string
	lifetime time.Duration

	taken, last []byte // the content that list is of, and that of the last read
	list        []pool.Upstream
}

func newFile(cfg FileConfig, lifetime time.Duration) (origin, error) {
	if cfg.Path == "" {
		return origin{}, errors.New("file: want a path")
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultFileInterval
	}
	if cfg.Interval < shortest {
		return origin{}, fmt.Errorf("file: an interval of %s: want at least %s", cfg.Interval, shortest)
	}
	return origin{
		source: &file{path: cfg.Path, lifetime: lifetime},
		name:   "file " + cfg.Path,
		pace:   pace{gap: cfg.Interval, retryMax: cfg.Interval},
	}, nil
}

func (f *file) ask(context.Context, time.Duration) (answer, error) {
	now, err := readBounded(f.path, maxFile)
	if err != nil {
		return answer{}, fmt.Errorf("read upstreams: %w", err)
	}
	settled := f.taken == nil || bytes.Equal(now, f.last)
	f.last = now
	if !settled || f.taken != nil && bytes.Equal(now, f.taken) {
		return answer{upstreams: f.list}, nil
	}
	list, err := parseList(now, f.lifetime)
	if err != nil {
		return answer{}, fmt.Errorf("read upstreams: %s: %w", f.path, err)
	}
	f.taken, f.list = now, list
	return answer{upstreams: list}, nil
}
