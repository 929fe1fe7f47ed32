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
	// maxLogged bounds the jobs of logs, because all are in memory: about 1 GB.
	maxLogged = 2_000_000
	// maxSpan bounds the time that is played.
	maxSpan = 31 * 24 * time.Hour
	// maxShown bounds how much of a line a note shows, in bytes.
	maxShown = 120
)

// Logs are the jobs of access logs, in the order in which they arrived, the first one at 0.
type Logs struct {
	entries []entry
	// Seen sums up how jobs were served, as far as the logs contain it.
	Seen Seen
	// Notes list what was found in each log, and what could not be read.
	Notes []string
}

// entry is what a log says of one job.
type entry struct {
	arrived, ended time.Time
	upstream       string // "" if it is not known
	id, session    string // "" if they are not known
	job            Job    // Offset and Submitter are filled in after all logs were read

	answered bool    // a response began, at an upstream that is named if any is
	end      float64 // in seconds after the arrival of the first job
	took     float64 // from the job's arrival at the upstream to the end of the response, in seconds
	most     float64 // took without the wait that the upstream reported
	run      float64 // how long the job ran; 0 if that is not known
	cold     bool    // the project was not cached there, as far as is known
	known    bool    // whether it was cached is known
	high     bool    // it is low only because no job is

	logged  time.Time // the time in the log, of the arrival or the end
	whole   bool      // that is in whole seconds
	partial bool      // the duration ends before the response does
}

// ReadLogs reads logs whole: pilotfish's own, or those of other proxies. Each is one submitter's; the jobs of a single
// log are spread over submitters. It keeps at most this many jobs, of the time with most of them. The first group of
// key is the key of lines without a field of that name; key can be nil.
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
		return nil, fmt.Errorf("%s: there is no job in the log; %s", strings.Join(paths, ", "), strings.Join(logs.Notes, "; "))
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

// busiest are the jobs of the time of at most maxSpan with most of them, but not more than most. So a
// clock that was set to 1970 for a while costs only its own jobs.
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

// Identified are the jobs as they came, with their identifiers. A job of a session that has had another one
// which ended before it came waits for that one to end.
func (l *Logs) Identified() (jobs []Job, ids []string) {
	last := map[string]int{} // the latest job of a session
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

// Only are the jobs with these indices, which rise. A job that waits for one that is left out waits for what that one
// waits for.
func Only(jobs []Job, kept []int) (some []Job) {
	lines := make([]Line, len(jobs)+1) // the new line of each, or of the job that it waits for
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

// Span is the time from the first job's arrival to the last one's, in seconds.
func (l *Logs) Span() float64 { return l.entries[len(l.entries)-1].job.Offset }

// Shorten cuts pauses: times without a job that are longer than this many seconds count only as long as this. It returns
// how many seconds were cut. Nothing happens in a pause, but to simulate one takes time.
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

// read reads the entries of one file, in the order of its lines, and notes which time it covers, and what it could not
// read.
func (l *Logs) read(path string, key *regexp.Regexp) (entries []entry, err error) {
	lines, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer lines.file.Close()
	decoder := &decoder{key: key}
	var first error // what is wrong with a line
	n, bad, partial := 1, 0, 0
	for ; ; n++ {
		line, err := lines.next()
		if err != nil && !errors.Is(err, errLong) {
			if !errors.Is(err, io.EOF) { // a compressed file that was cut
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

// spread moves the jobs of a log whose times are in whole seconds: those of one second come evenly during it.
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

// shown is the beginning of a line without what a terminal would obey.
func shown(line []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, string(line[:min(maxShown, len(line))]))
}
