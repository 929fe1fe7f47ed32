package trace

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/pkg/selection"
)

// jobLine is the line that pilotfish logs of a job, as far as it is needed here
// (docs/operate.md).
type jobLine struct {
	Time     string `json:"ts"`
	Message  string `json:"msg"`
	Level    string `json:"level"`
	Session  string `json:"session"`
	Project  string `json:"project"`
	Priority string `json:"priority"`
	Read     string `json:"read"`
	Outcome  string `json:"outcome"`
	Answer   string `json:"answer"`
	Attempts []struct {
		Cache    string   `json:"cache"`
		Upstream string   `json:"upstream"`
		Seconds  float64  `json:"seconds"`
		Wait     *float64 `json:"upstream_wait_seconds"`
		Fetch    float64  `json:"upstream_fetch_seconds"`
	} `json:"attempts"`
	FirstByte float64  `json:"ttfb_seconds"`
	Total     *float64 `json:"total_seconds"`
}

// logTime is the form of the time in pilotfish's log.
const logTime = "2006-01-02T15:04:05.000Z0700"

// object is a line from its first brace on: what collects logs may put a time or a name
// before it.
func object(line []byte) []byte { return line[max(0, bytes.IndexByte(line, '{')):] }

// isPilotfish reports whether a line is one of pilotfish's log, about whatever.
func isPilotfish(line []byte) bool {
	var l jobLine
	err := json.Unmarshal(object(line), &l)
	return err == nil && l.Time != "" && l.Message != "" && l.Level != ""
}

// decodePilotfish reads a line of pilotfish's log. A request that was refused before it
// was read as a job is none.
func decodePilotfish(line []byte) (*entry, error) {
	var l jobLine
	if !bytes.ContainsRune(line, '{') { // of another program, or a stack
		return nil, nil
	}
	if err := json.Unmarshal(object(line), &l); err != nil {
		field, reason := locate(err)
		if field != "" {
			reason = fmt.Errorf("field %s: %w", field, reason)
		}
		return nil, reason
	}
	if l.Message != "job" || l.Read == "unread" || l.Outcome == "rejected" || l.Outcome == "too_large" {
		return nil, nil
	}
	ended, err := time.Parse(logTime, l.Time)
	if err != nil {
		return nil, fmt.Errorf("field ts: %w", err)
	}
	if l.Total == nil {
		return nil, errors.New("field total_seconds: is missing")
	}
	priority, ok := selection.ParsePriority(l.Priority)
	if !ok {
		return nil, fmt.Errorf("field priority: unknown priority %.40q: it is high or low", l.Priority)
	}
	e := &entry{
		arrived: ended.Add(-seconds(*l.Total)), ended: ended, session: l.Session,
		job:  Job{Project: Project(l.Project), Priority: priority},
		seen: seen{answered: l.Answer != "absent", whole: l.Answer == "complete"},
	}
	if n := len(l.Attempts); n > 0 && e.seen.answered {
		last := &l.Attempts[n-1]
		sent := *l.Total - last.Seconds
		e.job.Load, e.upstream = last.Fetch, last.Upstream
		e.seen.wait, e.seen.cold = last.Wait, last.Cache == "none"
		e.seen.first, e.seen.output = max(0, l.FirstByte-sent), max(0, *l.Total-l.FirstByte)
	}
	if e.upstream != "" && e.job.Project != "" {
		e.hit = known(!e.seen.cold && e.job.Load == 0)
	}
	if field, err := e.job.check(); err != nil {
		return nil, fmt.Errorf("field %s: %w", field, err)
	}
	return e, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
