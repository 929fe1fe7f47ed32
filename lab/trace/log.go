package trace

import (
	"bufio"
	"bytes"
	"cmp"
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
	entries []entry
	// Seen is what the logs say of how jobs were served.
	Seen Seen
	// Notes say what was found in each log, and what is missing there.
	Notes []string
}

// entry is what a log tells of one job.
type entry struct {
	arrived, ended time.Time
	upstream       string // "" if it is not known
	job            Job    // Offset and Submitter are filled in when all were read

	answered bool    // a response began, at an upstream that is named if any is
	end      float64 // in seconds from the first job's arrival on
	took     float64 // from the job's arrival at the upstream to the end of the response, in seconds
	most     float64 // of that without the wait that the upstream told
	run      float64 // how long the job ran; 0 if that is not known
	cold     bool    // the project was taken to be not cached there
	known    bool    // whether it was is known
}

// ReadLogs reads logs whole: pilotfish's own, or those of other proxies as CSV or JSON Lines. Each is one
// submitter's; the jobs of one alone are spread over submitters. It keeps the first jobs, at most so many.
func ReadLogs(most int, paths ...string) (*Logs, error) {
	logs := &Logs{}
	var all []entry
	for i, path := range paths {
		entries, err := logs.read(path)
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
	all = all[:min(most, len(all))]
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

// read reads the entries of one file, in the order of its lines, and notes which time it covers, and what is missing.
func (l *Logs) read(path string) (entries []entry, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var columns []string // of a CSV file
	var first error      // what is wrong with a line
	n, bad := 1, 0
	for ; lines.Scan(); n++ {
		e, err := decode(lines.Bytes(), &columns)
		switch {
		case err != nil:
			bad++
			first = cmp.Or(first, fmt.Errorf("line %d: %w", n, err))
		case e != nil && len(entries) <= maxLogged:
			entries = append(entries, *e)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
	}
	if len(entries) > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("%s: %d jobs that ended from %s to %s", path, len(entries),
			entries[0].ended.Format(time.RFC3339), entries[len(entries)-1].ended.Format(time.RFC3339)))
	}
	if bad > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("%s: %v (left out; %d such lines)", path, first, bad))
	}
	return entries, nil
}

// decode reads a line. One that is not about a job has no entry. Text before a brace is ignored: what
// collects logs may put a time or a name there.
func decode(line []byte, columns *[]string) (*entry, error) {
	fields := map[string]string{}
	switch brace := bytes.IndexByte(line, '{'); {
	case *columns != nil && len(line) > 0:
		cells, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err == nil && len(cells) != len(*columns) {
			err = fmt.Errorf("%d values are not %d", len(cells), len(*columns))
		}
		if err != nil {
			return nil, err
		}
		for i, name := range *columns {
			fields[name] = cells[i]
		}
	case *columns == nil && brace >= 0:
		var own jobLine
		if err := json.Unmarshal(line[brace:], &own); err == nil && own.Message != "" && own.Level != "" {
			return own.entry()
		}
		var values map[string]any
		if err := json.Unmarshal(line[brace:], &values); err != nil {
			return nil, err
		}
		for name, v := range values {
			if v != nil {
				fields[name] = fmt.Sprint(v)
			}
		}
	default:
		if names := strings.Split(strings.TrimSpace(string(line)), ","); slices.Contains(names, "key") {
			*columns = names
		}
		return nil, nil
	}
	return accessEntry(fields)
}

// jobLine is the line that pilotfish logs of a job, as far as it is needed here (docs/operate.md).
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
		Cache    string  `json:"cache"`
		Upstream string  `json:"upstream"`
		Seconds  float64 `json:"seconds"`
		Wait     float64 `json:"upstream_wait_seconds"`
		Fetch    float64 `json:"upstream_fetch_seconds"`
	} `json:"attempts"`
	Total *float64 `json:"total_seconds"`
}

// entry is that of the line's job. A request that was refused before it was read as a job is none.
func (l *jobLine) entry() (*entry, error) {
	if l.Message != "job" || l.Read == "unread" || l.Outcome == "rejected" || l.Outcome == "too_large" {
		return nil, nil
	}
	ended, err := time.Parse(time.RFC3339Nano, l.Time)
	if err != nil {
		return nil, fmt.Errorf("field ts: %w", err)
	}
	if l.Total == nil || !(*l.Total >= 0 && *l.Total <= MaxSeconds) {
		return nil, errors.New("field total_seconds: is missing, or makes no sense")
	}
	e := &entry{arrived: ended.Add(-Duration(*l.Total)), ended: ended, job: Job{Project: l.Project}, answered: l.Answer != "absent"}
	if n := len(l.Attempts); n > 0 && e.answered {
		last := &l.Attempts[n-1]
		e.job.Load, e.upstream = min(max(0, last.Fetch), *l.Total), last.Upstream
		e.took, e.most, e.cold = last.Seconds, max(0, last.Seconds-last.Wait), last.Cache == "none"
	}
	e.known = e.upstream != "" && e.job.Project != ""
	return e, e.prioritize(l.Priority)
}
