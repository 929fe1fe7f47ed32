package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

const (
	maxSnapshot = 8 << 20 // bytes
	// lengthsVersion is raised when the keys of pool.Length change their meaning.
	lengthsVersion = 1
	// saveLengths is the time between two writes of the durations of jobs.
	saveLengths = 5 * time.Minute
)

// snapshot is the file that keeps the last set, and the learned durations of jobs, across restarts.
type snapshot struct {
	path   string
	source string // the name of the source that returned the set

	mu      sync.Mutex
	content content
	err     error // of the last read or write
}

// content is the content of the file.
type content struct {
	Source    string          `json:"source"`
	Upstreams []pool.Upstream `json:"upstreams"`
	// Lengths is missing in files of earlier versions. It is decoded by itself: if it is invalid, the upstreams are still used.
	Lengths json.RawMessage `json:"lengths,omitempty"`
}

// savedLengths is the content of content.Lengths.
type savedLengths struct {
	Version int           `json:"version"`
	Groups  []pool.Length `json:"groups"`
}

// write changes the content and replaces the file, atomically.
func (s *snapshot) write(change func(*content)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content.Source = s.source
	change(&s.content)
	text, err := json.MarshalIndent(s.content, "", " ")
	if err == nil {
		err = files.Write(s.path, text)
	}
	if s.err = nil; err != nil {
		s.err = fmt.Errorf("the snapshot cannot be written: %w", err)
	}
}

// problem returns the error of the last read or write.
func (s *snapshot) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// known reports whether there is a set: read from the file, or returned by the source. Before, a write could replace a snapshot
// that cannot be used now, such as that of another source, by nothing.
func (s *snapshot) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content.Upstreams != nil
}

// read reads the file, if there is one.
func (s *snapshot) read() {
	var c content
	if c, s.err = s.decode(); s.err == nil {
		s.content = c
	}
}

// decode returns the content of the file. A missing file has none. A file that
// is not a valid snapshot of this source is an error.
func (s *snapshot) decode() (last content, err error) {
	text, err := files.Read(s.path, maxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	}
	if err != nil {
		return last, fmt.Errorf("the snapshot %w", err)
	}
	if err := json.Unmarshal(text, &last); err != nil {
		return last, fmt.Errorf("the snapshot %s: %w", s.path, err)
	}
	if n := len(last.Upstreams); last.Source != s.source || n > maxUpstreams {
		return last, fmt.Errorf("the snapshot %s has %d upstreams of %s", s.path, n, settings.Quote(last.Source))
	}
	for i := range last.Upstreams {
		u := &last.Upstreams[i]
		if u.Address, err = settings.Address(u.Address); err == nil && !(u.Weight >= 0 && u.Weight <= maxWeight && u.Cores >= 0 && u.Cores <= maxCores) {
			err = fmt.Errorf("%s has weight %g and %d cores: want 0 to %g and 0 to %d", u.Address, u.Weight, u.Cores, maxWeight, maxCores)
		}
		if err != nil {
			return last, fmt.Errorf("the snapshot %s: %w", s.path, err)
		}
	}
	return last, nil
}

// Lengths returns the durations of jobs that the snapshot contained at the start; none without a snapshot.
func (d *Discovery) Lengths() ([]pool.Length, error) {
	if d.snapshot == nil || d.snapshot.content.Lengths == nil {
		return nil, nil
	}
	var saved savedLengths
	err := json.Unmarshal(d.snapshot.content.Lengths, &saved)
	if err == nil && saved.Version != lengthsVersion {
		err = fmt.Errorf("the format has version %d, this program reads %d", saved.Version, lengthsVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("the durations of jobs in the snapshot %s: %w", d.snapshot.path, err)
	}
	return saved.Groups, nil
}

// KeepLengths writes the learned durations of jobs into the snapshot every five minutes, and when ctx ends. Without a
// snapshot, it returns at once.
func (d *Discovery) KeepLengths(ctx context.Context, learned func() []pool.Length) {
	for goes := d.snapshot != nil; goes; {
		goes = sleep(ctx, saveLengths)
		text, err := json.Marshal(savedLengths{lengthsVersion, learned()})
		if err != nil {
			panic("BUG: discovery: durations of jobs that are no JSON: " + err.Error())
		}
		if d.snapshot.known() {
			d.snapshot.write(func(c *content) { c.Lengths = text })
		}
	}
}
