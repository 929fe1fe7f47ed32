package trace

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// File is the jobs of a trace file, or those of the logs of several sidecars.
type File struct {
	path string // of the trace file
	jobs []Job  // of the logs
	// Seen is what the logs say of how jobs were served.
	Seen Seen
	// Notes say what was found in each log, and what is missing there.
	Notes []string
}

// Open finds out what the files are, and reads logs whole. A trace file stands alone;
// it is read by Jobs.
func Open(paths ...string) (*File, error) {
	f := &File{}
	var logs []*log
	for _, path := range paths {
		l, err := readLog(path)
		switch {
		case err != nil:
			return nil, err
		case l != nil:
			f.Notes = append(f.Notes, l.notes()...)
			logs = append(logs, l)
		case len(paths) > 1:
			return nil, fmt.Errorf("%s: has no line of a job's log in its first %d: only logs are read together", path, firstLines)
		default:
			f.path = path
		}
	}
	if f.path != "" {
		return f, nil
	}
	var err error
	f.jobs, f.Seen, err = merge(logs)
	return f, err
}

// Jobs is the first jobs of a File.
type Jobs struct {
	Source
	io.Closer
	left int // negative: all
}

// Jobs returns the first jobs, all if limit is negative.
func (f *File) Jobs(limit int) (*Jobs, error) {
	if f.path == "" {
		list := List(f.jobs)
		return &Jobs{Source: &list, Closer: io.NopCloser(nil), left: limit}, nil
	}
	in, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	text, err := plain(in)
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return &Jobs{Source: NewReader(text, f.path), Closer: in, left: limit}, nil
}

// plain is the text of a file, which may be compressed.
func plain(in *os.File) (io.Reader, error) {
	if !strings.HasSuffix(in.Name(), ".gz") {
		return in, nil
	}
	return gzip.NewReader(in)
}

// Next returns the next job, or io.EOF after the last one that is wanted.
func (j *Jobs) Next() (Job, error) {
	if j.left == 0 {
		return Job{}, io.EOF
	}
	j.left--
	return j.Source.Next()
}

// Each calls do for every job that is left.
func Each(in Source, do func(*Job) error) error {
	for {
		job, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(&job)
		}
		if err != nil {
			return err
		}
	}
}
