package discovery

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

const (
	maxFile      = 4 << 20 // bytes
	fileInterval = 2 * time.Second
)

// file is a list in a file. The whole file is read each time: lists are small, and
// modification times and inodes do not show every change (edits in place, renames,
// links). A change is applied when two consecutive reads agree, so that a half-written
// file is not used.
type file struct {
	path string
	last []byte          // the content of the last read
	list []pool.Upstream // the applied list; nil before the first
}

// checkFile warns if the file does not exist. That is not an error: the file can be created later.
func (s *Settings) checkFile(f *settings.Faults) {
	if _, err := (&file{path: s.File}).query(context.Background(), 0); err != nil {
		f.Warn("", "%v", err)
	}
}

func (s *Settings) openFile(*Config) (source, error) {
	return source{(&file{path: s.File}).query, "file " + s.File, fileInterval}, nil
}

func (f *file) query(context.Context, time.Duration) (reply, error) {
	text, err := files.Read(f.path, maxFile)
	if err != nil {
		return reply{}, err
	}
	agrees := f.list == nil || bytes.Equal(text, f.last)
	f.last = text
	if agrees {
		list, err := parseList(f.path, text)
		if err != nil {
			return reply{}, err
		}
		f.list = list
	}
	return reply{upstreams: f.list}, nil
}

// parseList parses a file of upstreams. Each line has an address, followed by
// any of weight=, cores=, started_at=, stops_at=, preemptible=, draining= and for=. Blank lines and
// comments after '#' are ignored. The list is not nil.
func parseList(path string, text []byte) ([]pool.Upstream, error) {
	list, n := []pool.Upstream{}, 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		u, err := parseLine(words)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		list = append(list, u)
	}
	return list, nil
}

func parseLine(words []string) (pool.Upstream, error) {
	address, err := settings.Address(words[0])
	if err != nil {
		return pool.Upstream{}, err
	}
	var a attributes
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return pool.Upstream{}, fmt.Errorf("%s is not key=value", settings.Quote(w))
		}
		if err := a.set(key, value); err != nil {
			return pool.Upstream{}, err
		}
	}
	return a.at(address), nil
}
