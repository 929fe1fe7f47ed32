package trace

import (
	"bufio"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Writer writes a trace file, a job at a time, in the order in which it gets them.
// Equal jobs give equal bytes.
type Writer struct {
	out  *bufio.Writer
	json *jsontext.Encoder
}

// NewWriter returns a writer to w. It buffers: call Flush at the end.
func NewWriter(w io.Writer) *Writer {
	out := bufio.NewWriterSize(w, 64<<10)
	return &Writer{out: out, json: jsontext.NewEncoder(out)}
}

// Write appends a job. It refuses one that makes no sense by itself.
func (w *Writer) Write(job *Job) error {
	if field, err := job.check(); err != nil {
		return fmt.Errorf("field %s: %w", field, err)
	}
	return json.MarshalEncode(w.json, job, encoding())
}

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.out.Flush() }
