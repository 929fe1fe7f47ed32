package demo

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	rate     = 5.0 // jobs each second, on average
	projects = 40
	maxOpen  = 200 // jobs at one time; further ones are left out
)

// KeepBusy submits jobs to a sidecar until ctx ends, so that its page has something to
// show: of projects that differ in popularity, with costs that differ by a factor of ten.
func KeepBusy(ctx context.Context, client *http.Client, address string, rng *rand.Rand) {
	zipf := rand.NewZipf(rng, 1.2, 2, projects-1)
	places := make(chan struct{}, maxOpen)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rng.ExpFloat64() / rate * float64(time.Second))):
		}
		j := draw(rng, zipf, n)
		select {
		case places <- struct{}{}:
			jobs.Go(func() {
				defer func() { <-places }()
				_, _, _ = j.submit(ctx, client, address)
			})
		default: // enough are open
		}
	}
}

// draw makes up a job: its project, its priority and its cost. n tells it from the others, so
// that no result is used again.
func draw(rng *rand.Rand, projects *rand.Zipf, n int) job {
	priority := "low"
	if rng.IntN(5) == 0 {
		priority = "high"
	}
	seconds := 0.15 * math.Exp(rng.NormFloat64())
	return job{
		body: made(strconv.FormatUint(100+projects.Uint64(), 10), priority, n),
		cost: fmt.Sprintf("fetch=400ms,operators=%dms,output=%dms", int(1000*seconds), int(300*seconds)),
	}
}

// made is the body of a job of the load.
func made(project, priority string, n int) string {
	return fmt.Sprintf(`{"session_id":"demo-%d","project_id":%s,"priority":%q,"timeouts":{"queue_seconds":10,"evaluate_seconds":20},`+
		`"operators":[{"name":"demo","actions":[{"field":"demo","action":"set","value":{"type":"static","value":"%d"}}]}]}`, n, project, priority, n)
}

// job is one job of the demo.
type job struct {
	body string
	cost string // what the servers make it last, asleep: those of the demo trust it
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// submit posts a job as a submitter would, and returns the response. What becomes of a job of
// the load, the page shows.
func (j job) submit(ctx context.Context, client *http.Client, address string) (h http.Header, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/jobs", strings.NewReader(j.body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/csv")
	r.Header.Set("X-Cost", j.cost)
	resp, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the job was answered %s: %s", resp.Status, body)
	}
	return resp.Header, body, err
}
