package prewarm

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	gap        = time.Second      // the shortest time between two prefetches at one upstream
	timeout    = 30 * time.Second // of one prefetch
	maxPending = 1000             // prefetches that wait, for all upstreams together
)

// Prefetch is one project's data that one upstream is to fetch.
type Prefetch struct {
	Project  string
	Upstream string // fetches it
	Leaving  string // had the project's jobs
	path     string // where it takes the request
}

// pending are the prefetches that are not sent yet.
type pending struct {
	waiting int
	of      map[string][]Prefetch // by upstream
	last    map[string]time.Time  // when one was due there, if less than a gap ago
}

func newPending() *pending {
	return &pending{of: map[string][]Prefetch{}, last: map[string]time.Time{}}
}

// add puts prefetches behind those that wait. It drops what is beyond maxPending.
func (p *pending) add(plan []Prefetch) {
	for _, f := range plan[:min(len(plan), maxPending-p.waiting)] {
		p.of[f.Upstream] = append(p.of[f.Upstream], f)
		p.waiting++
	}
}

// due takes out what may be sent now: one for each upstream, a gap apart.
func (p *pending) due(now time.Time) (due []Prefetch) {
	for upstream, at := range p.last {
		if now.Sub(at) >= gap {
			delete(p.last, upstream)
		}
	}
	for upstream, list := range p.of {
		if _, tooSoon := p.last[upstream]; tooSoon {
			continue
		}
		due = append(due, list[0])
		p.last[upstream] = now
		p.waiting--
		if p.of[upstream] = list[1:]; len(list) == 1 {
			delete(p.of, upstream)
		}
	}
	return due
}

// send asks an upstream to fetch a project's data, and waits until it has.
func (p *Prewarmer) send(ctx context.Context, f Prefetch) error {
	text, err := body(f.Project)
	if err != nil {
		return fmt.Errorf("prefetch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.Upstream+f.path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("prefetch: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := p.cfg.Transport.RoundTrip(r) // which follows no redirect
	if err != nil {
		return fmt.Errorf("prefetch: %w", err)
	}
	_ = response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("prefetch: %s answered %s", f.Upstream, response.Status)
	}
	return nil
}

// body names the project as a number where it is one, because that is what
// most submitters write.
func body(project string) ([]byte, error) {
	if n, err := strconv.ParseInt(project, 10, 64); err == nil && strconv.FormatInt(n, 10) == project {
		return json.Marshal(map[string]int64{"project_id": n})
	}
	return json.Marshal(map[string]string{"project_id": project})
}
