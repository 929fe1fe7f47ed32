//go:build linux

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"example.org/pilotfish/lab/replay"
	"example.org/pilotfish/lab/trace"
)

// prepared replaces the body that package replay makes of a job by one of the scenario's.
type prepared struct {
	*http.Transport
	path   string
	bodies [][]byte
	next   atomic.Uint64
}

func (p *prepared) RoundTrip(r *http.Request) (*http.Response, error) {
	body := p.bodies[p.next.Add(1)%uint64(len(p.bodies))]
	r.URL.Path, r.Body, r.ContentLength = p.path, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return p.Transport.RoundTrip(r)
}

// paced submits jobs at the scenario's rate in an open loop. Latencies count from when a job was due.
func (c *compareCommand) paced(ctx context.Context, address string, s *scenario, d time.Duration) (load, error) {
	jobs := make([]trace.Job, int(float64(s.rate)*d.Seconds()))
	for i := range jobs {
		jobs[i].Offset = float64(i) / float64(s.rate)
	}
	p := &prepared{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}, path: s.path(), bodies: c.bodies}
	defer p.CloseIdleConnections()
	ended, err := replay.Run(ctx, replay.Config{Jobs: jobs, Targets: []string{"http://" + address}, Transport: p, Limit: d + 20*time.Second})
	if err != nil {
		return load{}, err
	}
	l := load{Jobs: len(ended), Microseconds: int(d.Microseconds())}
	times := make([]int, 0, len(ended))
	for i := range ended {
		if !ended[i].OK() {
			l.Failed++
		}
		times = append(times, int(ended[i].LastByte*1e6))
	}
	slices.Sort(times)
	at := func(perMille int) int { return times[min(len(times)-1, len(times)*perMille/1000)] }
	if len(times) > 0 {
		l.P50, l.P99, l.P999 = at(500), at(990), at(999)
	}
	return l, l.check()
}
