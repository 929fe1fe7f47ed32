package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
)

// maxFile bounds the file, in bytes.
const maxFile = 4 << 20

// file is a list in a file. The file is read whole each time, because lists are
// small, and times and inodes do not tell reliably that one changed: it may be
// edited in place, renamed over, or reached through a link. A change is taken
// once two reads in a row agree, so that a half-written file is not taken.
type file struct {
	path string

	taken, last []byte // the content that list was read from, and that of the last read
	list        []pool.Upstream
}

func newFile(cfg File) origin {
	return origin{
		source: &file{path: cfg.Path},
		name:   "file " + cfg.Path,
		pace:   pace{gap: cfg.Interval, retryMax: cfg.Interval},
	}
}

func (f *file) ask(context.Context, time.Duration) (reply, error) {
	now, err := files.Read(f.path, maxFile)
	if err != nil {
		return reply{}, fmt.Errorf("read upstreams: %w", err)
	}
	stable := f.taken == nil || bytes.Equal(now, f.last)
	f.last = now
	if !stable || f.taken != nil && bytes.Equal(now, f.taken) {
		return reply{upstreams: f.list}, nil
	}
	list, err := parseList(now)
	if err != nil {
		return reply{}, fmt.Errorf("read upstreams: %s: %w", f.path, err)
	}
	f.taken, f.list = now, list
	return reply{upstreams: list}, nil
}

// parseList reads a list of upstreams. Text that begins with a bracket is a JSON
// list of pool.Upstream; otherwise each line is an address followed by
// any of weight=, cores=, started_at=, stops_at=, preemptible= and draining=, blank, or
// a comment after '#'. Errors are *lineError.
func parseList(text []byte) ([]pool.Upstream, error) {
	if rest := bytes.TrimSpace(text); len(rest) > 0 && rest[0] == '[' {
		return parseJSON(text)
	}
	var list []pool.Upstream
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		u, err := parseLine(words)
		if err != nil {
			return nil, &lineError{line: n, err: err}
		}
		list = append(list, u)
	}
	return list, nil
}

func parseLine(words []string) (pool.Upstream, error) {
	address, err := canonical(words[0])
	if err != nil {
		return pool.Upstream{}, err
	}
	var a attributes
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return pool.Upstream{}, fmt.Errorf("%s is not key=value", quote(w))
		}
		if err := a.set(key, value); err != nil {
			return pool.Upstream{}, err
		}
	}
	return a.upstream(address), nil
}

func parseJSON(text []byte) ([]pool.Upstream, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if _, err := dec.Token(); err != nil { // the opening bracket
		return nil, jsonError(text, dec.InputOffset(), err)
	}
	list := []pool.Upstream{}
	for dec.More() {
		start := dec.InputOffset()
		var u pool.Upstream
		err := dec.Decode(&u)
		if err == nil {
			err = check(&u)
		}
		if err != nil {
			return nil, jsonError(text, start, err)
		}
		list = append(list, u)
	}
	if _, err := dec.Token(); err != nil { // the closing one
		return nil, jsonError(text, dec.InputOffset(), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, jsonError(text, dec.InputOffset(), errors.New("something follows the list"))
	}
	return list, nil
}

// jsonError adds the line of text to err: the line where the syntax breaks, or
// where the value after offset begins.
func jsonError(text []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		offset, err = int64(len(text)), io.ErrUnexpectedEOF
	default:
		rest := text[offset:]
		offset += int64(len(rest) - len(bytes.TrimLeft(rest, ", \t\r\n")))
	}
	return &lineError{line: 1 + bytes.Count(text[:offset], []byte("\n")), err: err}
}

// lineError is what is wrong in a line of a file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }
