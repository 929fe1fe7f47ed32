package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxCapture bounds the jobs of a capture that is read, because all are kept in
// memory: about 1 GB.
const MaxCapture = 2_000_000

// List is a trace in memory.
type List []Job

// Next takes the first job out of the list; io.EOF is the end.
func (l *List) Next() (Job, error) {
	if len(*l) == 0 {
		return Job{}, io.EOF
	}
	first := (*l)[0]
	*l = (*l)[1:]
	return first, nil
}

// ReadCapture reads a trace whose lines are in another order than that of their
// offsets, as a sidecar writes them when jobs end. It returns the jobs in the order of
// their offsets, the first one at 0, with After as the numbers of that order. A last
// line that was not written to its end is left out. name is the file's name in errors.
func ReadCapture(in io.Reader, name string) ([]Job, error) {
	r := NewReader(in, name)
	r.anyOrder = true
	torn := false
	r.lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		torn = atEOF && len(data) > 0 && !bytes.Contains(data, []byte("\n"))
		return bufio.ScanLines(data, atEOF)
	})
	type numbered struct {
		Job
		line Line
	}
	var all []numbered
	for {
		job, err := r.Next()
		if errors.Is(err, io.EOF) || err != nil && torn && len(all) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(all) == MaxCapture {
			return nil, r.fail("", fmt.Errorf("a capture of more than %d jobs does not fit into memory: split it", MaxCapture))
		}
		all = append(all, numbered{job, Line(r.Line())})
	}
	slices.SortStableFunc(all, func(a, b numbered) int { return cmp.Compare(a.Offset, b.Offset) })
	place := make([]Line, len(all)+1)
	for i := range all {
		place[all[i].line] = Line(i + 1)
	}
	jobs := make([]Job, len(all))
	for i := range all {
		jobs[i] = all[i].Job
		jobs[i].Offset -= all[0].Offset
		if after := place[jobs[i].After]; after <= Line(i) {
			jobs[i].After = after
		} else {
			jobs[i].After = 0 // it came later: nobody can have waited for it
		}
	}
	return jobs, nil
}
