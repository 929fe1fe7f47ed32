package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json"
)

const (
	// MaxLine bounds a line, and MaxText a name, in bytes.
	MaxLine = 1 << 20
	MaxText = 256
	// MaxSeconds bounds every time and every cost: some 31 years, so that sums of
	// them stay within a time.Duration.
	MaxSeconds = 1e9
)

// Reader reads a trace file, or a trace of Mooncake's, a job at a time. It is strict: an unknown field, a value
// that makes no sense, or a job earlier than the one before it ends the reading.
type Reader struct {
	name   string // of the file, for errors
	lines  *bufio.Scanner
	line   int64
	offset float64
}

// NewReader returns a reader of the trace in r. name is the file's, for errors.
func NewReader(r io.Reader, name string) *Reader {
	return &Reader{name: name, lines: scanner(r)}
}

// scanner reads lines of at most MaxLine bytes.
func scanner(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	return lines
}

// Next returns the next job, or io.EOF after the last. Any other error names the file,
// the line and the field.
func (r *Reader) Next() (Job, error) {
	if !r.lines.Scan() {
		return Job{}, r.end()
	}
	r.line++
	text := r.lines.Bytes()
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return Job{}, r.fail("", errors.New("is not a JSON object: every line holds one job"))
	}
	job := Job{Offset: math.NaN()}
	decode := decodeJob
	if isMooncake(text) {
		decode = decodeMooncake
	}
	if err := decode(text, &job); err != nil {
		return Job{}, r.fail(locate(err))
	}
	if field, err := job.check(); err != nil {
		return Job{}, r.fail(field, err)
	}
	if job.After >= Line(r.line) {
		return Job{}, r.fail("after", fmt.Errorf("%d is not an earlier line", job.After))
	}
	if job.Offset < r.offset {
		return Job{}, r.fail("offset", fmt.Errorf("%v goes back in time: the line before has %v", job.Offset, r.offset))
	}
	r.offset = job.Offset
	return job, nil
}

func decodeJob(text []byte, job *Job) error { return json.Unmarshal(text, job, decoding()) }

// end says why there is no further line.
func (r *Reader) end() error {
	err := r.lines.Err()
	switch {
	case err != nil:
		r.line++
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("is longer than %d bytes", MaxLine)
		}
		return r.fail("", err)
	case r.line == 0:
		return fmt.Errorf("%s: the trace is empty: it has no job", r.name)
	}
	return io.EOF
}

func (r *Reader) fail(field string, err error) error {
	if field != "" {
		err = fmt.Errorf("field %s: %w", field, err)
	}
	return fmt.Errorf("%s: line %d: %w", r.name, r.line, err)
}

// check returns the first field of a job that makes no sense by itself.
func (j *Job) check() (field string, err error) {
	if math.IsNaN(j.Offset) {
		return "offset", errors.New("is missing")
	}
	for _, f := range [...]struct {
		name  string
		value float64
		most  float64
	}{
		{"offset", j.Offset, MaxSeconds},
		{"load_s", j.Load, MaxSeconds},
		{"shared_s", j.SharedRules, MaxSeconds},
		{"operators_s", j.Operators, MaxSeconds},
		{"output_s", j.Output, MaxSeconds},
		{"timeouts/queue", j.Timeouts.Queue, MaxSeconds},
		{"timeouts/evaluate", j.Timeouts.Evaluate, MaxSeconds},
		{"timeouts/stream", j.Timeouts.Stream, MaxSeconds},
		{"version", float64(j.Version), math.MaxInt64},
		{"channel", float64(j.Channel), math.MaxInt64},
		{"bytes", float64(j.Bytes), math.MaxInt64},
		{"read_tokens", float64(j.Read), maxTokens},
		{"write_tokens", float64(j.Write), maxTokens},
		{"blocks", float64(len(j.Blocks)), float64(blocksOf(j.Read))},
		{"submitter", float64(j.Submitter), math.MaxInt64},
		{"after", float64(j.After), math.MaxInt64},
	} {
		if !(f.value >= 0 && f.value <= f.most) {
			return f.name, fmt.Errorf("%v is not between 0 and %v", f.value, f.most)
		}
	}
	for _, n := range j.Needs {
		if len(j.Needs) > maxNeeds || n.Name == "" || !(n.Load >= 0 && n.Load <= MaxSeconds) || n.Bytes < 0 {
			return "needs", fmt.Errorf("at most %d with a name, a time and a size make sense", maxNeeds)
		}
	}
	if len(j.Shared) > MaxText {
		return "shared", fmt.Errorf("%d bytes are more than %d", len(j.Shared), MaxText)
	}
	if j.Kind == Prefetch && j.SharedRules+j.Operators+j.Output > 0 {
		return "kind", errors.New("a prefetch has only load_s: it runs no rules")
	}
	return "", nil
}
