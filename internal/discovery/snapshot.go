package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
)

// snapshot is the file that keeps the last set over a restart: a list of upstreams as
// Settings.File may be, with the source in its first line.
type snapshot struct {
	path   string
	source string // the name of the source that gave the set
}

// head is the first line.
func (s *snapshot) head() string { return "# " + s.source + "\n" }

// write replaces the file by set, whole or not at all.
func (s *snapshot) write(set []pool.Upstream) error {
	text := []byte(s.head())
	for _, u := range set {
		text = appendLine(text, u)
	}
	if err := files.Write(s.path, text); err != nil {
		return fmt.Errorf("the snapshot cannot be written: %w", err)
	}
	return nil
}

// read returns the upstreams of the file, none if there is no file. A file that
// is not a whole and valid snapshot of this source is an error.
func (s *snapshot) read() ([]pool.Upstream, error) {
	text, err := readFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot %w", err)
	}
	if !bytes.HasPrefix(text, []byte(s.head())) {
		return nil, fmt.Errorf("the snapshot %s is not of %s", s.path, s.source)
	}
	set, err := parseList(s.path, text)
	if n := len(set); err == nil && n > maxUpstreams {
		err = fmt.Errorf("%s has %d upstreams, at most %d are allowed", s.path, n, maxUpstreams)
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot %w", err)
	}
	return set, nil
}

// appendLine appends the line of a file that parseLine reads as u.
func appendLine(text []byte, u pool.Upstream) []byte {
	text = append(text, u.Address...)
	if u.Weight != 0 {
		text = fmt.Append(text, " weight=", strconv.FormatFloat(u.Weight, 'g', -1, 64))
	}
	if u.Cores != 0 {
		text = fmt.Append(text, " cores=", strconv.Itoa(u.Cores))
	}
	if !u.StartedAt.IsZero() {
		text = fmt.Append(text, " started_at=", u.StartedAt.Format(time.RFC3339Nano))
	}
	if !u.StopsAt.IsZero() {
		text = fmt.Append(text, " stops_at=", u.StopsAt.Format(time.RFC3339Nano))
	}
	if u.Draining {
		text = append(text, " draining=true"...)
	}
	return append(text, '\n')
}
