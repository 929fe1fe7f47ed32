package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// file is a list in a file. The file is read whole each time, because lists are
// small, and times and inodes do not tell reliably that one changed: it may be
// edited in place, renamed over, or reached through a link. A change is taken
// once two reads in a row agree, so that a half-written file is not taken.
type file struct {
	path string
	last []byte          // the content of the last read
	list []pool.Upstream // what was taken last; nil is nothing yet
}

// checkFile warns if the file does not exist. That is not an error: the file can be created later.
func (s *Settings) checkFile(f *settings.Faults) {
	if _, err := (&file{path: s.File}).ask(context.Background(), 0); err != nil {
		f.Warn("", "%v", err)
	}
}

func (s *Settings) openFile(*Config) (origin, error) {
	return origin{(&file{path: s.File}).ask, "file " + s.File, fileInterval}, nil
}

func (f *file) ask(context.Context, time.Duration) (reply, error) {
	now, err := readFile(f.path)
	if err != nil {
		return reply{}, err
	}
	agrees := f.list == nil || bytes.Equal(now, f.last)
	f.last = now
	if agrees {
		list, err := parseList(f.path, now)
		if err != nil {
			return reply{}, err
		}
		f.list = list
	}
	return reply{upstreams: f.list}, nil
}

// readFile reads a file of upstreams.
func readFile(path string) ([]byte, error) {
	text, err := files.Read(path, maxFile)
	if at, ok := errors.AsType[*fs.PathError](err); ok { // its text repeats the path
		return nil, fmt.Errorf("%s cannot be read: %w", path, at.Err)
	}
	return text, err
}

// parseList reads the text of a file of upstreams: each line is an address followed by
// any of weight=, cores=, started_at=, stops_at=, preemptible=, draining= and for=, blank, or
// a comment after '#'. The list is not nil.
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
