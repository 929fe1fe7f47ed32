package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// maxLogged bounds the jobs of logs, because all are in memory: about 1 GB.
	maxLogged = 2_000_000
	// maxLine bounds a line, in bytes.
	maxLine = 1 << 20
)

// Logs are the jobs of access logs, in the order in which they came, the first one at 0.
type Logs struct {
	Jobs []Job
	// Seen is what the logs say of how jobs were served.
	Seen Seen
	// Notes say what was found in each log, and what is missing there.
	Notes []string
}

// entry is what a log tells of one job.
type entry struct {
	arrived, ended time.Time
	upstream       string // "" if it is not known
	hit            *bool  // whether the project was cached; nil if that is not known
	job            Job    // Offset and Submitter are filled in when all were read

	answered bool     // a response began
	took     float64  // from the job's arrival at the upstream to the end of the response, in seconds
	wait     *float64 // at the upstream; nil where it does not tell
	cold     bool     // the project was taken to be not cached there
}

// work is the time that the job took without its wait.
func (e *entry) work() float64 {
	if e.wait == nil {
		return e.took
	}
	return max(0, e.took-*e.wait)
}

// ReadLogs reads logs whole: pilotfish's own, or those of other proxies as CSV or JSON Lines. Each is one
// submitter's; the jobs of one alone are spread over submitters. What jobs cost is estimated.
func ReadLogs(paths ...string) (*Logs, error) {
	logs := &Logs{}
	var all []entry
	for i, path := range paths {
		l := &log{path: path}
		if err := l.read(); err != nil {
			return nil, err
		}
		if logs.Notes = append(logs.Notes, l.notes()...); len(all)+len(l.entries) > maxLogged {
			return nil, fmt.Errorf("%s: more than %d jobs do not fit into memory: take a part of the log", path, maxLogged)
		}
		for _, e := range l.entries {
			e.job.Submitter = int64(i)
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no job in the log; %s", strings.Join(paths, ", "), strings.Join(logs.Notes, "; "))
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.arrived.Compare(b.arrived) })
	estimate(all)
	for i, e := range all {
		e.job.Offset = e.arrived.Sub(all[0].arrived).Seconds()
		if len(paths) == 1 {
			e.job.Submitter = int64(i)
		}
		logs.Jobs = append(logs.Jobs, e.job)
	}
	logs.Seen = see(all)
	return logs, nil
}

// log is the entries of one file, in the order of its lines.
type log struct {
	path    string
	names   []string // of the columns of a CSV file
	entries []entry
	bad     int   // lines that could not be read
	badLine int   // the first of them
	badErr  error // what is wrong there
}

func (l *log) read() error {
	file, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		e, err := l.decode(lines.Bytes())
		switch {
		case err != nil:
			if l.bad++; l.bad == 1 {
				l.badLine, l.badErr = n, err
			}
		case e != nil && len(l.entries) <= maxLogged:
			l.entries = append(l.entries, *e)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: line %d: %w", l.path, n, err)
	}
	return nil
}

// decode reads a line. One that is not about a job has no entry. Text before a brace is ignored: what
// collects logs may put a time or a name there.
func (l *log) decode(line []byte) (*entry, error) {
	brace := bytes.IndexByte(line, '{')
	switch {
	case l.names != nil:
		return l.decodeCSV(string(line))
	case brace >= 0:
		var own jobLine
		if err := json.Unmarshal(line[brace:], &own); err == nil && own.Message != "" && own.Level != "" {
			return own.entry()
		}
		var values map[string]any
		if err := json.Unmarshal(line[brace:], &values); err != nil {
			return nil, err
		}
		fields := map[string]string{}
		for name, v := range values {
			if v != nil {
				fields[name] = fmt.Sprint(v)
			}
		}
		return accessEntry(fields)
	}
	if names := strings.Split(strings.TrimSpace(string(line)), ","); slices.Contains(names, "key") {
		l.names = names
	}
	return nil, nil
}

func (l *log) decodeCSV(line string) (*entry, error) {
	if line == "" {
		return nil, nil
	}
	cells, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return nil, err
	}
	if len(cells) != len(l.names) {
		return nil, fmt.Errorf("%d values are not %d", len(cells), len(l.names))
	}
	fields := map[string]string{}
	for i, name := range l.names {
		fields[name] = cells[i]
	}
	return accessEntry(fields)
}

// notes say which time the log covers, and what is missing in it.
func (l *log) notes() (all []string) {
	if len(l.entries) > 0 {
		first, last := l.entries[0].ended, l.entries[len(l.entries)-1].ended
		all = append(all, fmt.Sprintf("%s: %d jobs that ended from %s to %s",
			l.path, len(l.entries), first.Format(time.RFC3339), last.Format(time.RFC3339)))
	}
	if l.bad > 0 {
		all = append(all, fmt.Sprintf("%s: line %d: %v (left out; %d such lines)", l.path, l.badLine, l.badErr, l.bad))
	}
	return all
}

// jobLine is the line that pilotfish logs of a job, as far as it is needed here
// (docs/operate.md).
type jobLine struct {
	Time     string  `json:"ts"`
	Message  string  `json:"msg"`
	Level    string  `json:"level"`
	Project  Project `json:"project"`
	Priority string  `json:"priority"`
	Read     string  `json:"read"`
	Outcome  string  `json:"outcome"`
	Answer   string  `json:"answer"`
	Attempts []struct {
		Cache    string   `json:"cache"`
		Upstream string   `json:"upstream"`
		Seconds  float64  `json:"seconds"`
		Wait     *float64 `json:"upstream_wait_seconds"`
		Fetch    float64  `json:"upstream_fetch_seconds"`
	} `json:"attempts"`
	Total *float64 `json:"total_seconds"`
}

// entry is that of the line's job. A request that was refused before it was read as a job is none.
func (l *jobLine) entry() (*entry, error) {
	if l.Message != "job" || l.Read == "unread" || l.Outcome == "rejected" || l.Outcome == "too_large" {
		return nil, nil
	}
	ended, err := time.Parse("2006-01-02T15:04:05.000Z0700", l.Time)
	if err != nil {
		return nil, fmt.Errorf("field ts: %w", err)
	}
	if l.Total == nil || !(*l.Total >= 0 && *l.Total <= MaxSeconds) {
		return nil, errors.New("field total_seconds: is missing, or makes no sense")
	}
	e := &entry{arrived: ended.Add(-seconds(*l.Total)), ended: ended, job: Job{Project: l.Project}, answered: l.Answer != "absent"}
	if n := len(l.Attempts); n > 0 && e.answered {
		last := &l.Attempts[n-1]
		e.job.Load, e.upstream = min(max(0, last.Fetch), *l.Total), last.Upstream
		e.took, e.wait, e.cold = last.Seconds, last.Wait, last.Cache == "none"
	}
	if e.upstream != "" && e.job.Project != "" {
		e.hit = new(!e.cold && e.job.Load == 0)
	}
	return e, e.prioritize(l.Priority)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
