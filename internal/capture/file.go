package capture

import (
	"errors"
	"fmt"
	"os"
	"time"

	"example.org/pilotfish/pkg/trace"
)

// maxSessions bounds the sessions that are remembered, about 400 kB. The rest begin
// anew: their jobs are written, but do not name the one before.
const maxSessions = 10_000

// file is one trace. Lines are in the order in which jobs ended.
type file struct {
	f     *os.File
	trace *trace.Writer
	size  int64 // what was written, but for what is in memory
	lines trace.Line
	last  map[uint64]ended // by session
}

// ended is the job of a session that ended last.
type ended struct {
	line trace.Line
	at   time.Time
}

// newFile begins a file. What is at its path moves aside: to path.1, and that to path.2,
// as many as are kept.
func newFile(path string, keep int) (*file, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file that can be put aside", path)
	case info.Size() > 0 && keep > 0:
		if err := moveAside(path, keep); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	n := &file{f: f, last: map[uint64]ended{}}
	n.trace = trace.NewWriter(n)
	return n, nil
}

// moveAside makes room at path.
func moveAside(path string, keep int) error {
	numbered := func(n int) string { return fmt.Sprintf("%s.%d", path, n) }
	for n := keep - 1; n > 0; n-- {
		if err := os.Rename(numbered(n), numbered(n+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(path, numbered(1))
}

// Write implements io.Writer.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	f.size += int64(n)
	return n, err
}

// write appends a line. If the session's job before had ended when this one came, its
// submitter may have waited for it, and so does who replays the trace.
func (f *file) write(l *line) error {
	if before, ok := f.last[l.session]; ok && !before.at.After(l.arrived) {
		l.job.After = before.line
	}
	if err := f.trace.Write(&l.job); err != nil {
		return err
	}
	f.lines++
	if l.session == 0 {
		return nil
	}
	if len(f.last) >= maxSessions {
		clear(f.last)
	}
	f.last[l.session] = ended{line: f.lines, at: l.ended}
	return nil
}
