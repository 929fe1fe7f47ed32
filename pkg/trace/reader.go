package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json"
)

// MaxLine bounds one line, in bytes.
const MaxLine = 1 << 20

// ErrEmpty is returned for a trace without a job.
var ErrEmpty = errors.New("the trace is empty: it has no job")

// Error says where a trace is wrong.
type Error struct {
	// File is the name that NewReader got; it may be "".
	File string
	Line int64
	// Field is a path as in timeouts/queue; "" is the line as a whole.
	Field string
	Err   error
}

// Error names file, line and field.
func (e *Error) Error() string {
	where := fmt.Sprintf("line %d: ", e.Line)
	if e.File != "" {
		where = e.File + ": " + where
	}
	if e.Field != "" {
		where += "field " + e.Field + ": "
	}
	return where + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Reader reads a trace, a job at a time, in the order of their offsets. It is
// strict: an unknown field, or a value that makes no sense, ends the reading.
type Reader struct {
	name   string // of the file, for errors
	lines  *bufio.Scanner
	decode json.Options
	line   int64
	offset float64
	err    error

	anyOrder bool // offsets may go back
}

// line is a job whose offset may be missing: Offset then points to NaN. For null
// it is nil.
type line struct {
	Offset *float64 `json:"offset"`
	Job
}

// NewReader returns a reader of the trace in r. name is the file's name in
// errors; with "" they name the line alone.
func NewReader(r io.Reader, name string) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	return &Reader{name: name, lines: lines, decode: decoding()}
}

// Next returns the next job, or io.EOF after the last. Any other error is
// ErrEmpty or an *Error. Every later call returns it again.
func (r *Reader) Next() (Job, error) {
	if r.err != nil {
		return Job{}, r.err
	}
	job, err := r.next()
	if err != nil {
		r.err = err
		return Job{}, err
	}
	return job, nil
}

// Line is the number of the line that Next returned last, counted from 1.
func (r *Reader) Line() int64 { return r.line }

func (r *Reader) next() (Job, error) {
	if !r.lines.Scan() {
		return Job{}, r.end()
	}
	r.line++
	text := r.lines.Bytes()
	if len(text) == 0 {
		return Job{}, r.fail("", errors.New("is empty: every line holds one job"))
	}
	offset := math.NaN()
	entry := line{Offset: &offset}
	if err := json.Unmarshal(text, &entry, r.decode); err != nil {
		return Job{}, r.fail(locate(err))
	}
	if entry.Offset == nil || offset != offset {
		return Job{}, r.fail("offset", errors.New("is missing"))
	}
	job := entry.Job
	job.Offset = offset
	if f := job.check(); f != nil {
		return Job{}, r.fail(f.field, errors.New(f.reason))
	}
	if job.After >= Line(r.line) {
		return Job{}, r.fail("after", fmt.Errorf("%d is not an earlier line", job.After))
	}
	if job.Offset < r.offset && !r.anyOrder {
		return Job{}, r.fail("offset", fmt.Errorf("%v goes back in time: the line before has %v", job.Offset, r.offset))
	}
	r.offset = job.Offset
	return job, nil
}

// end says why there is no further line.
func (r *Reader) end() error {
	err := r.lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		return r.fail("", fmt.Errorf("is longer than %d bytes", MaxLine))
	case err != nil:
		r.line++
		return r.fail("", err)
	case r.line > 0:
		return io.EOF
	case r.name != "":
		return fmt.Errorf("%s: %w", r.name, ErrEmpty)
	}
	return ErrEmpty
}

func (r *Reader) fail(field string, err error) error {
	return &Error{File: r.name, Line: r.line, Field: field, Err: err}
}
