package prewarm

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

// send asks an upstream to fetch a project's data, and waits until it has.
func (p *Prewarmer) send(ctx context.Context, f Prefetch) error {
	text, err := body(f.Project)
	if err != nil {
		return fmt.Errorf("prefetch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.Upstream+p.cfg.Path, bytes.NewReader(text))
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
