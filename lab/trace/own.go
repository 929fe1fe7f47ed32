package trace

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// ownLine reports whether pilotfish wrote a line. Caddy's and Traefik's lines also have a message and a level.
func ownLine(f fields) bool {
	return f["msg"] != "" && f["level"] != "" && !f.has("logger") && !f.has("startutc")
}

// jobLine has the fields of a job in pilotfish's own log that are needed here (docs/operate.md).
type jobLine struct {
	Time     string  `json:"ts"`
	Message  string  `json:"msg"`
	ID       string  `json:"id"`
	Session  string  `json:"session"`
	Project  Project `json:"project"`
	Priority string  `json:"priority"`
	Read     string  `json:"read"`
	Outcome  string  `json:"outcome"`
	Response string  `json:"response"`
	Answer   string  `json:"answer"` // the name of response in older logs
	Attempts []struct {
		Cache    string  `json:"cache"`
		Upstream string  `json:"upstream"`
		Seconds  float64 `json:"seconds"`
		Wait     float64 `json:"upstream_wait_seconds"`
		Fetch    float64 `json:"upstream_fetch_seconds"`
	} `json:"attempts"`
	Total *float64 `json:"total_seconds"`
}

// ownEntry reads a line of pilotfish's log. A request that was refused before its body was read has no entry.
func ownEntry(raw []byte) (*entry, error) {
	var l jobLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, err
	}
	if l.Message != "job" || l.Read == "unread" || l.Outcome == "rejected" || l.Outcome == "too_large" {
		return nil, nil
	}
	ended, err := time.Parse(time.RFC3339Nano, l.Time)
	if err != nil {
		return nil, fmt.Errorf("field ts: %w", err)
	}
	if l.Total == nil || !(*l.Total >= 0 && *l.Total <= MaxSeconds) {
		return nil, fmt.Errorf("field total_seconds: is missing, or not between 0 and %v", float64(MaxSeconds))
	}
	e := &entry{id: l.ID, session: l.Session, arrived: ended.Add(-Duration(*l.Total)), ended: ended, job: Job{Project: l.Project}, answered: l.Response != "absent" && l.Answer != "absent"}
	if n := len(l.Attempts); n > 0 && e.answered {
		last := &l.Attempts[n-1]
		e.job.Load, e.upstream = min(max(0, last.Fetch), *l.Total), last.Upstream
		e.took, e.most, e.cold = last.Seconds, max(0, last.Seconds-last.Wait), last.Cache == "none"
	}
	e.known = e.upstream != "" && e.job.Project != ""
	return e, e.prioritize(l.Priority)
}
