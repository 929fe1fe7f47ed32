package scenario

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/pkg/trace"
)

// Trace is the first jobs of a trace file.
type Trace struct {
	source sim.Source
	io.Closer
	left int // negative: all
}

// OpenTrace reads the first jobs of a trace file, all if limit is negative. A sidecar's
// capture is put in the order in which its jobs came, and what they cost is estimated.
func OpenTrace(path string, limit int) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 64<<10)
	if !isCapture(in) {
		return &Trace{source: trace.NewReader(in, path), Closer: f, left: limit}, nil
	}
	defer f.Close()
	jobs, err := trace.ReadCapture(in, path)
	if err != nil {
		return nil, err
	}
	workload.EstimateCosts(jobs)
	return &Trace{source: (*trace.List)(&jobs), Closer: io.NopCloser(nil), left: limit}, nil
}

// ReadCapture reads the jobs of a capture, in the order of their arrival. A file that is
// none has no jobs.
func ReadCapture(path string) ([]trace.Job, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	if !isCapture(in) {
		return nil, nil
	}
	return trace.ReadCapture(in, path)
}

// isCapture reports whether the first job of a trace tells what happened to it.
func isCapture(in *bufio.Reader) bool {
	text, _ := in.Peek(in.Size()) // a short file is read to its end
	line, _, _ := bytes.Cut(text, []byte("\n"))
	job, err := trace.NewReader(bytes.NewReader(line), "").Next()
	return err == nil && job.Measured != nil
}

// Next returns the next job, or io.EOF after the last one that is wanted.
func (t *Trace) Next() (trace.Job, error) {
	if t.left == 0 {
		return trace.Job{}, io.EOF
	}
	t.left--
	return t.source.Next()
}
