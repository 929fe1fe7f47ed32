package trace

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

const (
	// MaxLogged bounds the jobs of logs, because all are in memory: about 1 GB.
	MaxLogged = 2_000_000
	// firstLines is in how many lines a log must show what it is.
	firstLines = 1000
)

// format is the log of one kind of program. Another kind is another row of formats.
type format struct {
	name string
	// decode reads a line. A line that is not about a job has none: it returns nil.
	decode func(line []byte) (*entry, error)
	// is reports whether only a log of this format has such a line.
	is func(line []byte) bool
}

func formats() []format {
	rows := new(access)
	return []format{
		{"pilotfish", decodePilotfish, isPilotfish},
		{"access log, CSV", rows.decodeCSV, rows.isHeader},
		{"access log, JSON", decodeAccessJSON, isAccessJSON},
	}
}

// entry is what a log tells of one job.
type entry struct {
	arrived, ended time.Time
	session        string
	upstream       string // "" if it is not known
	hit            *bool  // whether the project was cached; nil if that is not known
	job            Job    // Offset, Submitter and After are filled in by merge
	seen           seen
}

// log is the entries of one file, in the order of its lines.
type log struct {
	path    string
	entries []entry
	bad     int   // lines that could not be read
	badLine int64 // the first of them
	badErr  error
}

// readLog reads a log whole; nil if the file is none.
func readLog(path string) (*log, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f := formatOf(file)
	if f == nil {
		return nil, nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	l := &log{path: path}
	lines := scanner(file)
	n := int64(1)
	for ; lines.Scan(); n++ {
		l.add(f, n, lines.Bytes())
		if len(l.entries) > MaxLogged {
			return nil, fmt.Errorf("%s: line %d: more than %d jobs do not fit into memory: split the log", path, n, MaxLogged)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
	}
	return l, nil
}

// formatOf finds the format of a log by its first lines; nil if they are of none.
func formatOf(file io.Reader) *format {
	all := formats()
	lines := scanner(file)
	for range firstLines {
		if !lines.Scan() {
			break
		}
		for i := range all {
			if all[i].is(lines.Bytes()) {
				return &all[i]
			}
		}
	}
	return nil
}

func (l *log) add(f *format, n int64, line []byte) {
	e, err := f.decode(line)
	switch {
	case err != nil:
		if l.bad++; l.bad == 1 {
			l.badLine, l.badErr = n, err
		}
	case e != nil:
		l.entries = append(l.entries, *e)
	}
}

// notes say which time the log covers, and what is missing in it.
func (l *log) notes() []string {
	if len(l.entries) == 0 {
		return []string{fmt.Sprintf("%s: has no job", l.path)}
	}
	first, last := l.entries[0].ended, l.entries[len(l.entries)-1].ended
	all := []string{fmt.Sprintf("%s: %d jobs that ended from %s to %s", l.path, len(l.entries), first.Format(time.RFC3339), last.Format(time.RFC3339))}
	if l.bad > 0 {
		all = append(all, fmt.Sprintf("%s: line %d: %v (left out; %d such lines)", l.path, l.badLine, l.badErr, l.bad))
	}
	return all
}

// merge puts the jobs of all logs in the order in which they came, the first one at 0.
// Each log is one submitter's. A job waits for the job of its session that ended last
// before it came. What jobs cost is estimated.
func merge(logs []*log) ([]Job, Seen, error) {
	var all []entry
	for i, l := range logs {
		for _, e := range l.entries {
			e.job.Submitter = int64(i)
			all = append(all, e)
		}
	}
	switch {
	case len(all) == 0:
		return nil, Seen{}, fmt.Errorf("%s: there is no job in the log", logs[0].path)
	case len(all) > MaxLogged:
		return nil, Seen{}, fmt.Errorf("%s and others: more than %d jobs do not fit into memory: split the logs", logs[0].path, MaxLogged)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.arrived.Compare(b.arrived) })
	estimate(all)
	byEnd := make([]int, len(all))
	for i := range byEnd {
		byEnd[i] = i
	}
	slices.SortStableFunc(byEnd, func(a, b int) int { return cmp.Or(all[a].ended.Compare(all[b].ended), cmp.Compare(a, b)) })
	last := map[string]Line{} // by session: the job that ended last
	jobs := make([]Job, len(all))
	for i := range all {
		e := &all[i]
		for len(byEnd) > 0 && byEnd[0] < i && !all[byEnd[0]].ended.After(e.arrived) {
			last[all[byEnd[0]].session] = Line(byEnd[0] + 1)
			byEnd = byEnd[1:]
		}
		jobs[i] = e.job
		jobs[i].Offset = e.arrived.Sub(all[0].arrived).Seconds()
		if e.session != "" {
			jobs[i].After = last[e.session]
		}
	}
	return jobs, see(all), nil
}
