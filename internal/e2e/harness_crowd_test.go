package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowd is several submitters that each post one job after another.
type crowd struct {
	url      string
	over     chan struct{}
	wg       sync.WaitGroup
	answered atomic.Int64

	mu   sync.Mutex
	lost []error
}

// post lets n submitters post to echoing upstreams. Each keeps its connection between jobs, or
// opens a new one for each job.
func (c *crowd) post(n int, keep bool) {
	for who := range n {
		c.wg.Go(func() {
			transport := &http.Transport{DisableKeepAlives: !keep}
			defer transport.CloseIdleConnections()
			pace := time.NewTicker(4 * time.Millisecond)
			defer pace.Stop()
			for i := 0; ; i++ {
				select {
				case <-c.over:
					return
				case <-pace.C:
				}
				if err := c.job(transport, fmt.Sprintf("%t-%d-%d", keep, who, i)); err != nil {
					c.mu.Lock()
					c.lost = append(c.lost, fmt.Errorf("keep %t: %w", keep, err))
					c.mu.Unlock()
					continue
				}
				c.answered.Add(1)
			}
		})
	}
}

// job posts one job and checks its response.
func (c *crowd) job(by http.RoundTripper, id string) error {
	body := `{"project_id": 12345, "session_id": "` + id + `"}`
	r, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := by.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", res.Status, answer)
	case string(answer) != body:
		return errors.New("the answer to another job: " + string(answer))
	}
	return nil
}

// more waits for the responses of this many further jobs.
func (c *crowd) more(t *testing.T, jobs int64) {
	t.Helper()
	advances(t, c.answered.Load, c.answered.Load()+jobs, "jobs are not answered anymore")
}

// end stops the submitters and returns the errors of lost jobs.
func (c *crowd) end() []error {
	close(c.over)
	c.wg.Wait()
	return c.lost
}

// newCrowd starts submitters that post one job at a time or several at once, over kept and over
// new connections.
func newCrowd(address string) *crowd {
	c := &crowd{url: "http://" + address + "/v1/jobs", over: make(chan struct{})}
	c.post(8, false)
	c.post(2, true)
	return c
}
