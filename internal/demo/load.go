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
// show: more and fewer of them in turns of two minutes, of projects that differ in
// popularity, with costs that differ by a factor of ten.
func KeepBusy(ctx context.Context, client *http.Client, address string, rng *rand.Rand) {
	zipf := rand.NewZipf(rng, 1.2, 2, projects-1)
	places := make(chan struct{}, maxOpen)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	began := time.Now()
	for n := 1; ; n++ {
		wave := 1 + 0.7*math.Sin(2*math.Pi*time.Since(began).Minutes()/2)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rng.ExpFloat64() / (rate * wave) * float64(time.Second))):
		}
		j := draw(rng, zipf)
		j.address, j.n = address, n
		select {
		case places <- struct{}{}:
			jobs.Go(func() {
				defer func() { <-places }()
				submit(ctx, client, j)
			})
		default: // enough are open
		}
	}
}

// draw makes up a job: its project, its priority and its cost.
func draw(rng *rand.Rand, projects *rand.Zipf) job {
	j := job{project: strconv.FormatUint(100+projects.Uint64(), 10), priority: "low"}
	if rng.IntN(5) == 0 {
		j.priority = "high"
	}
	seconds := 0.15 * math.Exp(rng.NormFloat64())
	j.cost = fmt.Sprintf("fetch=400ms,operators=%dms,output=%dms", int(1000*seconds), int(300*seconds))
	return j
}

// job is one job of the load.
type job struct {
	address  string // where it is submitted
	n        int    // tells it from the others, so that no result is used again
	project  string
	priority string
	cost     string // what the servers make it last, asleep: those of the demo trust it
}

// submit submits one job and reads its response; what becomes of it, the page shows.
func submit(ctx context.Context, client *http.Client, j job) {
	body := fmt.Sprintf(`{"session_id":"demo-%d","project_id":%s,"priority":%q,"timeouts":{"queue_seconds":10,"evaluate_seconds":20},`+
		`"operators":[{"name":"demo","actions":[{"field":"demo","action":"set","value":{"type":"static","value":"%d"}}]}]}`, j.n, j.project, j.priority, j.n)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+j.address+"/v1/jobs", strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Cost", j.cost)
	resp, err := client.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
