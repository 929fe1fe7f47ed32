//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scenario is one thing to measure of every peer.
type scenario struct {
	Name        string `json:"name"`
	Upstreams   int    `json:"upstreams"`
	Body        int    `json:"body_bytes"`
	Connections int    `json:"connections"`
	// measure returns figures by their names, given the peer's process (nil for
	// direct) and its address.
	measure   func(ctx context.Context, m *machine, s *scenario, p *process, address string) (map[string]float64, error)
	quick     bool // part of the quick run
	ofProcess bool // it measures nothing but the process
}

// scenarios are all that is measured. waiting is the number of jobs that wait at
// one time, probes that of those submitted one after the other, stream the bytes
// of the long answer.
func scenarios(waiting, probes int, stream int64) []scenario {
	return []scenario{
		{Name: "4 KB jobs, 32 connections, 4 upstreams", Upstreams: 4, Body: 4 << 10, Connections: 32, measure: underLoad, quick: true},
		{Name: "4 KB jobs, 1 connection, 4 upstreams", Upstreams: 4, Body: 4 << 10, Connections: 1, measure: underLoad},
		{Name: "4 KB jobs, 256 connections, 4 upstreams", Upstreams: 4, Body: 4 << 10, Connections: 256, measure: underLoad},
		{Name: "64 KB jobs, 32 connections, 4 upstreams", Upstreams: 4, Body: 64 << 10, Connections: 32, measure: underLoad},
		{Name: "1 MB jobs, 32 connections, 4 upstreams", Upstreams: 4, Body: 1 << 20, Connections: 32, measure: underLoad},
		{Name: "4 KB jobs, 32 connections, 14 upstreams", Upstreams: 14, Body: 4 << 10, Connections: 32, measure: underLoad},
		{Name: "4 KB jobs, 32 connections, 300 upstreams", Upstreams: 300, Body: 4 << 10, Connections: 32, measure: underLoad},
		{Name: "one job at a time, an answer that pauses", Upstreams: 4, Body: 4 << 10, Connections: 1, measure: firstByte(probes), quick: true},
		{Name: fmt.Sprintf("a chunked answer of %.3g GB", float64(stream)/1e9), Upstreams: 4, Body: 4 << 10, Connections: 1, measure: streaming(stream), quick: true},
		{Name: fmt.Sprintf("%d jobs of 4 KB that wait", waiting), Upstreams: 4, Body: 4 << 10, Connections: waiting, measure: memory, quick: true, ofProcess: true},
	}
}

// machine is what the measurements share.
type machine struct {
	stubs    []string // addresses of the upstreams
	loader   loader
	duration time.Duration // of a load
	settle   time.Duration // until memory is measured
	patience time.Duration // without a further job that waits
}

// underLoad is the processor time of a job, and the time that it takes.
func underLoad(ctx context.Context, m *machine, s *scenario, p *process, address string) (map[string]float64, error) {
	if _, err := m.loader.run(ctx, address, s.Connections, min(m.duration, time.Second)); err != nil { // warms up
		return nil, err
	}
	before, err := cpuOf(p)
	if err != nil {
		return nil, err
	}
	l, err := m.loader.run(ctx, address, s.Connections, m.duration)
	if err != nil {
		return nil, err
	}
	after, err := cpuOf(p)
	if err != nil {
		return nil, err
	}
	mean := float64(s.Connections) * float64(l.Microseconds) / float64(l.Jobs) // each connection always has a job
	return map[string]float64{
		"cpu us/job": float64((after - before).Microseconds()) / float64(l.Jobs),
		"jobs/s":     float64(l.Jobs) / (float64(l.Microseconds) / 1e6),
		"p50 us":     float64(l.P50),
		"p99 us":     float64(l.P99),
		"p99 / mean": float64(l.P99) / mean,
	}, nil
}

func cpuOf(p *process) (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	return p.cpu()
}

// firstByte is the time until an answer begins, of jobs that come one after
// the other: the median.
func firstByte(jobs int) func(context.Context, *machine, *scenario, *process, string) (map[string]float64, error) {
	return func(ctx context.Context, _ *machine, s *scenario, _ *process, address string) (map[string]float64, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		c, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		times := make([]time.Duration, jobs)
		for i := range times {
			started := time.Now()
			first, err := c.exchange(requestOf(http.MethodPost, slowPath, bodyOf(i, s.Body)))
			if err != nil {
				return nil, err
			}
			times[i] = first.Sub(started)
		}
		slices.Sort(times)
		return map[string]float64{"first byte us": float64(times[jobs/2].Microseconds())}, nil
	}
}

// streaming is the processor time of a long answer.
func streaming(bytes int64) func(context.Context, *machine, *scenario, *process, string) (map[string]float64, error) {
	return func(ctx context.Context, _ *machine, _ *scenario, p *process, address string) (map[string]float64, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+streamPath+strconv.FormatInt(bytes, 10), nil)
		if err != nil {
			return nil, err
		}
		before, err := cpuOf(p)
		if err != nil {
			return nil, err
		}
		transport := &http.Transport{DisableCompression: true, ReadBufferSize: 256 << 10}
		defer transport.CloseIdleConnections()
		res, err := transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		n, err := io.Copy(io.Discard, res.Body)
		if err != nil || n != bytes {
			return nil, fmt.Errorf("%d of %d bytes came: %w", n, bytes, err)
		}
		after, err := cpuOf(p)
		if err != nil {
			return nil, err
		}
		return map[string]float64{"cpu s/GB": (after - before).Seconds() / (float64(bytes) / 1e9)}, nil
	}
}

// memory is what the peer takes when it is idle, and for each job that waits for its answer.
func memory(ctx context.Context, m *machine, s *scenario, p *process, address string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	time.Sleep(m.settle)
	idle, err := p.memory()
	if err != nil {
		return nil, err
	}
	held, err := hold(ctx, s, address)
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	waiting, err := m.waiting(ctx, len(held))
	if err != nil {
		return nil, err
	}
	time.Sleep(m.settle)
	full, err := p.memory()
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		"idle MB":          float64(idle) / 1e6,
		"waiting jobs":     float64(waiting),
		"KB/waiting job":   float64(full-idle) / 1e3 / float64(waiting),
		"MB with them all": float64(full) / 1e6,
	}, nil
}

// hold submits jobs that are not answered, over a connection each. It stops
// where the proxy takes no more connections.
func hold(ctx context.Context, s *scenario, address string) (held []*connection, err error) {
	const dialers = 64
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	count := min(s.Connections, mostJobs(openFiles()))
	for d := range dialers {
		all.Go(func() {
			for i := d; i < count; i += dialers {
				c, failed := dial(ctx, address)
				if failed != nil && ctx.Err() != nil {
					return
				}
				if failed == nil {
					_, failed = c.Write(requestOf(http.MethodPost, waitPath, bodyOf(i%projects, s.Body)))
				}
				mu.Lock()
				if failed != nil {
					err = failed
				} else {
					held = append(held, c)
				}
				mu.Unlock()
				if failed != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return held, err
}

// waiting waits until so many jobs have reached the upstreams, or no more come, and returns how many did.
func (m *machine) waiting(ctx context.Context, wanted int) (int, error) {
	last, since := 0, time.Now()
	for {
		n, err := m.countWaiting(ctx)
		if err != nil {
			return 0, err
		}
		if n > last {
			last, since = n, time.Now()
		}
		switch {
		case n >= wanted:
			return n, nil
		case time.Since(since) > m.patience && n > 0:
			return n, nil
		case time.Since(since) > m.patience+10*time.Second:
			return 0, errors.New("no job reached an upstream")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (m *machine) countWaiting(ctx context.Context) (int, error) {
	c, err := dial(ctx, m.stubs[0])
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET "+countPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
