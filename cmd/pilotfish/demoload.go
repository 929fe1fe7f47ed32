package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	demoRate     = 5.0 // jobs each second, on average
	demoProjects = 40
	demoOpen     = 200 // jobs at one time; further ones are left out
)

// keepBusy submits jobs to a sidecar until ctx ends, so that its page has something to
// show: more and fewer of them in turns of two minutes, of projects that differ in
// popularity, with costs that differ by a factor of ten.
func keepBusy(ctx context.Context, address string) {
	rng := newRand()
	zipf := rand.NewZipf(rng, 1.2, 2, demoProjects-1)
	places := make(chan struct{}, demoOpen)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	began := time.Now()
	for n := 1; ; n++ {
		wave := 1 + 0.7*math.Sin(2*math.Pi*time.Since(began).Minutes()/2)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rng.ExpFloat64() / (demoRate * wave) * float64(time.Second))):
		}
		project, cost := 100+zipf.Uint64(), 0.15*math.Exp(rng.NormFloat64())
		priority := "low"
		if rng.IntN(5) == 0 {
			priority = "high"
		}
		select {
		case places <- struct{}{}:
			jobs.Go(func() {
				defer func() { <-places }()
				submitDemoJob(ctx, address, n, project, priority, cost)
			})
		default:
		}
	}
}

// submitDemoJob submits one job and reads its response; what becomes of it, the page shows.
func submitDemoJob(ctx context.Context, address string, n int, project uint64, priority string, cost float64) {
	body := fmt.Sprintf(`{"session_id":"demo-%d","project_id":%d,"priority":%q,"timeouts":{"queue_seconds":10,"evaluate_seconds":20},`+
		`"operators":[{"name":"demo","actions":[{"field":"demo","action":"set","value":{"type":"static","value":"%d"}}]}]}`, n, project, priority, n)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/jobs", strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	// What the servers of the demo make a job last, asleep: they trust this header.
	r.Header.Set("X-Cost", fmt.Sprintf("fetch=400ms,operators=%dms,output=%dms", int(1000*cost), int(300*cost)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
