//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// scenario is one thing to measure of every peer.
type scenario struct {
	name        string
	upstreams   int
	body        int // bytes
	connections int
	// measure returns figures, given the peer (nil is none) and its address.
	measure   func(ctx context.Context, m *machine, s *scenario, p proxy, address string) ([]figure, error)
	ofProcess bool // it measures nothing but the process
}

// scenarios are all that is measured. waiting is the number of jobs that wait at
// one time, stream the bytes of the long answer.
func scenarios(waiting int, stream int64) (all []scenario) {
	for _, c := range []struct {
		size                   string
		connections, upstreams int
	}{{"4 KB", 32, 4}, {"4 KB", 1, 4}, {"4 KB", 256, 4}, {"64 KB", 32, 4}, {"1 MB", 32, 4}, {"4 KB", 32, 14}, {"4 KB", 32, 300}} {
		all = append(all, scenario{
			name: fmt.Sprintf("%s jobs, %d connections, %d upstreams", c.size, c.connections, c.upstreams), upstreams: c.upstreams,
			body: map[string]int{"4 KB": 4 << 10, "64 KB": 64 << 10, "1 MB": 1 << 20}[c.size], connections: c.connections, measure: underLoad,
		})
	}
	return append(all,
		scenario{fmt.Sprintf("a chunked answer of %.3g GB", float64(stream)/1e9), 4, 4 << 10, 1, streaming(stream), true},
		scenario{fmt.Sprintf("%d jobs of 4 KB that wait", waiting), 4, 4 << 10, waiting, memory, true},
	)
}

// machine is what the measurements share.
type machine struct {
	stubs    *stubs
	loader   *wrk
	duration time.Duration // of a load
}

const (
	settle   = time.Second      // until memory is measured
	patience = 15 * time.Second // without a further job that waits
)

// underLoad is the processor time of a job, and the time that it takes.
func underLoad(ctx context.Context, m *machine, s *scenario, p proxy, address string) ([]figure, error) {
	if _, err := m.loader.run(ctx, address, s.connections, min(m.duration, time.Second)); err != nil { // warms up
		return nil, err
	}
	before, err := p.cpu()
	if err != nil {
		return nil, err
	}
	l, err := m.loader.run(ctx, address, s.connections, m.duration)
	if err != nil {
		return nil, err
	}
	after, err := p.cpu()
	if err != nil {
		return nil, err
	}
	figures := []figure{{"jobs/s", float64(l.Jobs) / (float64(l.Microseconds) / 1e6)}, {latency, float64(l.P50)}}
	if p == nil {
		return figures, nil
	}
	return append([]figure{{cpuPerJob, float64((after - before).Microseconds()) / float64(l.Jobs)}}, figures...), nil
}

// streaming is the processor time of a long answer.
func streaming(bytes int64) func(context.Context, *machine, *scenario, proxy, string) ([]figure, error) {
	return func(ctx context.Context, _ *machine, _ *scenario, p proxy, address string) ([]figure, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+streamPath+strconv.FormatInt(bytes, 10), nil)
		if err != nil {
			return nil, err
		}
		before, err := p.cpu()
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
		after, err := p.cpu()
		if err != nil {
			return nil, err
		}
		return []figure{{cpuPerByte, (after - before).Seconds() / (float64(bytes) / 1e9)}}, nil
	}
}

// memory is what the peer takes when it is idle, and for each job that waits for its answer.
func memory(ctx context.Context, m *machine, s *scenario, p proxy, address string) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	time.Sleep(settle)
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
	waiting, err := m.stubs.wait(len(held))
	if err != nil {
		return nil, err
	}
	time.Sleep(settle)
	full, err := p.memory()
	if err != nil {
		return nil, err
	}
	return []figure{
		{"idle MB", float64(idle) / 1e6},
		{"waiting jobs", float64(waiting)},
		{"KB/waiting job", float64(full-idle) / 1e3 / float64(waiting)},
		{"MB with them all", float64(full) / 1e6},
	}, nil
}

// hold submits jobs that are not answered, over a connection each. It stops
// where the proxy takes no more connections.
func hold(ctx context.Context, s *scenario, address string) (held []net.Conn, err error) {
	var mu sync.Mutex
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(64)
	for i := range min(s.connections, mostJobs(openFiles())) {
		group.Go(func() error {
			dialer := net.Dialer{Timeout: 30 * time.Second}
			c, err := dialer.DialContext(within, "tcp", address)
			if err != nil {
				return err
			}
			mu.Lock()
			held = append(held, c)
			mu.Unlock()
			job := bodyOf(i%projects, s.body)
			_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", waitPath, len(job), job)
			return err
		})
	}
	return held, group.Wait()
}

// wait waits until so many jobs have reached the upstreams, or no more come, and returns how many did.
func (s *stubs) wait(wanted int) (int, error) {
	last, since := 0, time.Now()
	for {
		n := int(s.waiting.Load())
		if n > last {
			last, since = n, time.Now()
		}
		switch {
		case n >= wanted:
			return n, nil
		case time.Since(since) > patience && n > 0:
			return n, nil
		case time.Since(since) > patience+10*time.Second:
			return 0, errors.New("no job reached an upstream")
		}
		time.Sleep(50 * time.Millisecond)
	}
}
