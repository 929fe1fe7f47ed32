package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Writer writes a trace, a job at a time, in the order in which it gets them.
// Equal jobs give equal bytes.
type Writer struct {
	out    *bufio.Writer
	json   *jsontext.Encoder
	encode json.Options
	line   int64
}

// NewWriter returns a writer to w. It buffers: call Flush at the end.
func NewWriter(w io.Writer) *Writer {
	out := bufio.NewWriterSize(w, 64<<10)
	return &Writer{out: out, json: jsontext.NewEncoder(out), encode: encoding()}
}

// Write appends a job. It refuses a job that a Reader would refuse by itself;
// the order of offsets is the caller's.
func (w *Writer) Write(job *Job) error {
	w.line++
	if f := job.check(); f != nil {
		return &Error{Line: w.line, Field: f.field, Err: errors.New(f.reason)}
	}
	if job.After < 0 || job.After >= Line(w.line) {
		return &Error{Line: w.line, Field: "after", Err: fmt.Errorf("%d is not an earlier line", job.After)}
	}
	if err := json.MarshalEncode(w.json, job, w.encode); err != nil {
		return &Error{Line: w.line, Err: err}
	}
	return nil
}

// Flush writes out what is buffered.
func (w *Writer) Flush() error { return w.out.Flush() }
