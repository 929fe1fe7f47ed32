package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"example.org/pilotfish/pkg/selection"
)

const (
	// maxLogged bounds the number of jobs, which are all in memory: about 1 GB.
	maxLogged = 2_000_000
	// maxSpan bounds the time from the first to the last job.
	maxSpan = 31 * 24 * time.Hour
	// maxShown bounds the part of a line that a note quotes, in bytes.
	maxShown = 120
)

// Logs are the jobs of access logs in the order of their arrival. The first one arrives at 0.
type Logs struct {
	entries []entry
	// Seen summarises how jobs were served, as far as the logs contain it.
	Seen Seen
	// Notes list what each log contains, and what could not be read.
	Notes []string
}

// entry is one job in a log.
type entry struct {
	arrived, ended time.Time
	upstream       string // "" if unknown
	id, session    string // "" if unknown
	job            Job    // Offset and Submitter are set after all logs were read

	answered bool    // the job got a response from an upstream
	end      float64 // in seconds after the arrival of the first job
	took     float64 // from the job's arrival at the upstream to the end of the response, in seconds
	most     float64 // took without the wait that the upstream reported
	run      float64 // execution time in seconds; 0 if unknown
	cold     bool    // cache miss
	known    bool    // hit or miss is known
	high     bool    // its priority is high in the log, where no job is low

	logged  time.Time // the time in the log, of the arrival or the end
	whole   bool      // logged is in whole seconds
	partial bool      // the duration does not include the whole response
}

// ReadLogs reads access logs of pilotfish or of other proxies. Each log is one submitter's; the jobs of a single
// log are spread over submitters. It keeps at most most jobs: those of the busiest period. The first group of
// key finds the key in lines without a field of that name; key can be nil.
func ReadLogs(most int, key *regexp.Regexp, paths ...string) (*Logs, error) {
	logs := &Logs{}
	var all []entry
	for i, path := range paths {
		entries, err := logs.read(path, key)
		if err != nil {
			return nil, err
		}
		if len(all)+len(entries) > maxLogged {
			return nil, fmt.Errorf("%s: more than %d jobs do not fit into memory: take a part of the log", path, maxLogged)
		}
		for _, e := range entries {
			e.job.Submitter = int64(i)
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no job in the log (lab/README.md has the forms of logs); %s", strings.Join(paths, ", "), strings.Join(logs.Notes, "; "))
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.arrived.Compare(b.arrived) })
	read := len(all)
	if all = busiest(all, most); len(all) < read {
		logs.Notes = append(logs.Notes, fmt.Sprintf("%d of %d jobs count: those that arrived from %s to %s", len(all), read,
			all[0].arrived.Format(time.RFC3339), all[len(all)-1].arrived.Format(time.RFC3339)))
	}
	if !slices.ContainsFunc(all, func(e entry) bool { return e.job.Project != "" }) {
		logs.Notes = append(logs.Notes, "no job has a key: log it, or set --key to find it in a line")
	}
	for i := range all {
		e := &all[i]
		e.job.Offset, e.end = e.arrived.Sub(all[0].arrived).Seconds(), e.ended.Sub(all[0].arrived).Seconds()
		if len(paths) == 1 {
			e.job.Submitter = int64(i)
		}
	}
	logs.entries, logs.Seen = all, see(all)
	return logs, nil
}

// busiest returns the jobs of the busiest period of at most maxSpan and at most most jobs. If a clock was set to
// 1970 for some time, only the jobs of that time are lost.
func busiest(all []entry, most int) []entry {
	begin, end, first := 0, 0, 0
	for i := range all {
		for all[i].arrived.Sub(all[first].arrived) > maxSpan || i+1-first > most {
			first++
		}
		if i+1-first > end-begin {
			begin, end = first, i+1
		}
	}
	return all[begin:end]
}

// Identified returns the jobs in the order of arrival, with their identifiers. A job depends on the previous job of
// its session if that one ended before this one arrived.
func (l *Logs) Identified() (jobs []Job, ids []string) {
	last := map[string]int{} // the latest job of each session
	for i := range l.entries {
		e := &l.entries[i]
		if before, ok := last[e.session]; ok && e.session != "" && l.entries[before].end <= e.job.Offset {
			e.job.After = Line(before + 1)
		}
		last[e.session] = i
		if e.high {
			e.job.Priority = selection.High
		}
		jobs, ids = append(jobs, e.job), append(ids, e.id)
	}
	return jobs, ids
}

// Only returns the jobs with the given ascending indices. A job that depends on a removed job depends on that job's
// dependency instead.
func Only(jobs []Job, kept []int) (some []Job) {
	lines := make([]Line, len(jobs)+1) // the new line of each job; of a removed one, the new line of its dependency
	for i, n := 0, 0; i < len(jobs); i++ {
		after := lines[jobs[i].After]
		if lines[i+1] = after; n < len(kept) && kept[n] == i {
			n++
			some, lines[i+1] = append(some, jobs[i]), Line(n)
			some[n-1].After = after
		}
	}
	return some
}

// Span returns the time from the first job's arrival to the last one's, in seconds.
func (l *Logs) Span() float64 { return l.entries[len(l.entries)-1].job.Offset }

// Shorten shortens the periods without a job to at most pause seconds, because simulating them takes time although
// nothing happens. It returns the number of removed seconds.
func (l *Logs) Shorten(pause float64) (cut float64) {
	latest := 0.0
	for i := range l.entries {
		e := &l.entries[i]
		e.job.Offset, e.end = e.job.Offset-cut, e.end-cut
		if more := e.job.Offset - latest - pause; more > 0 {
			e.job.Offset, e.end, cut = e.job.Offset-more, e.end-more, cut+more
		}
		latest = max(latest, e.end)
	}
	return cut
}

// read reads the entries of one file in the order of its lines. It notes the time that they cover, and what it could
// not read.
func (l *Logs) read(path string, key *regexp.Regexp) (entries []entry, err error) {
	lines, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer lines.file.Close()
	decoder := &decoder{key: key}
	var first error // of the first unreadable line
	n, bad, partial := 1, 0, 0
	for ; ; n++ {
		line, err := lines.next()
		if err != nil && !errors.Is(err, errLong) {
			if !errors.Is(err, io.EOF) { // a truncated compressed file
				l.Notes = append(l.Notes, fmt.Sprintf("%s: %v after %d lines: the rest is missing", path, err, n-1))
			}
			break
		}
		var e *entry
		var taken [][]byte
		if err == nil {
			line = slices.Clone(line)
			e, err = decoder.entry(line, func() ([]byte, error) {
				next, err := lines.next()
				if next = slices.Clone(next); err == nil {
					taken = append(taken, next)
				} else if errors.Is(err, errLong) {
					bad++
				}
				return next, err
			})
		}
		switch {
		case err != nil:
			lines.back = append(taken, lines.back...)
			bad++
			first = cmp.Or(first, fmt.Errorf("line %d: %w: %s", n, err, shown(line)))
			continue
		case e != nil && len(entries) <= maxLogged:
			entries = append(entries, *e)
			if e.partial {
				partial++
			}
		}
		n += len(taken)
	}
	if len(entries) > 0 {
		spread(entries)
		l.Notes = append(l.Notes, fmt.Sprintf("%s: %d jobs that ended from %s to %s", path, len(entries),
			entries[0].ended.Format(time.RFC3339), entries[len(entries)-1].ended.Format(time.RFC3339)))
	}
	if len(entries) == 0 && bad == 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("%s: none of %d lines is about a job", path, n-1))
	}
	if partial > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("%s: %d durations begin with +, as HAProxy's logasap writes them: they are too short", path, partial))
	}
	if bad > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("%s: %v (left out; %d such lines)", path, first, bad))
	}
	return entries, nil
}

// spread distributes the jobs of each second evenly over it, if all times of a log are in whole seconds.
func spread(entries []entry) {
	if slices.ContainsFunc(entries, func(e entry) bool { return !e.whole }) {
		return
	}
	count, place := map[int64]int{}, map[int64]int{}
	for i := range entries {
		count[entries[i].logged.Unix()]++
	}
	for i := range entries {
		e := &entries[i]
		second := e.logged.Unix()
		after := Duration((float64(place[second]) + 0.5) / float64(count[second]))
		place[second]++
		e.arrived, e.ended = e.arrived.Add(after), e.ended.Add(after)
	}
}

// shown returns the start of a line without control characters.
func shown(line []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, string(line[:min(maxShown, len(line))]))
}
