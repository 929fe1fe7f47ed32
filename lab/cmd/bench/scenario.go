//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// scenario is one thing to measure of every peer.
type scenario struct {
	name        string
	upstreams   int
	body        int // bytes
	connections int
	waits       bool // the jobs are not answered, and memory is measured
}

// scenarios are all that is measured. waiting is the number of jobs that wait at one time.
func scenarios(waiting int) (all []scenario) {
	const kb = 1 << 10
	for _, s := range []scenario{
		{"4 KB", 4, 4 * kb, 32, false}, {"4 KB", 4, 4 * kb, 1, false}, {"4 KB", 4, 4 * kb, 256, false}, {"64 KB", 4, 64 * kb, 32, false},
		{"1 MB", 4, 1024 * kb, 32, false}, {"4 KB", 14, 4 * kb, 32, false}, {"4 KB", 300, 4 * kb, 32, false},
	} {
		s.name = fmt.Sprintf("%s jobs, %d connections, %d upstreams", s.name, s.connections, s.upstreams)
		all = append(all, s)
	}
	return append(all, scenario{fmt.Sprintf("%d jobs of 4 KB that wait", waiting), 4, 4 * kb, waiting, true})
}

// machine is what the measurements share.
type machine struct {
	stubs    *stubs
	wrk, dir string        // paths of the program, and of files
	duration time.Duration // of a load
}

const (
	settle   = time.Second      // until memory is measured
	patience = 15 * time.Second // without a further job that waits
)

// measure returns figures, given the peer (nil is none) and its address.
func (s *scenario) measure(ctx context.Context, m *machine, p *proxy, address string) ([]figure, error) {
	if s.waits {
		return s.memory(ctx, m, p, address)
	}
	return s.underLoad(ctx, m, p, address)
}

// underLoad is the processor time of a job, and the time that it takes.
func (s *scenario) underLoad(ctx context.Context, m *machine, p *proxy, address string) ([]figure, error) {
	if _, err := m.load(ctx, address, s.connections, min(m.duration, time.Second)); err != nil { // warms up
		return nil, err
	}
	before, err := p.cpu()
	if err != nil {
		return nil, err
	}
	l, err := m.load(ctx, address, s.connections, m.duration)
	if err != nil {
		return nil, err
	}
	after, err := p.cpu()
	figures := []figure{
		{cpuPerJob, (after - before) * 1e6 / float64(l.Jobs)}, {"jobs/s", float64(l.Jobs) / (float64(l.Microseconds) / 1e6)}, {latency, float64(l.P50)},
	}
	if p == nil {
		figures = figures[1:]
	}
	return figures, err
}

// memory is what the peer takes when it is idle, and for each job that waits for its answer.
func (s *scenario) memory(ctx context.Context, m *machine, p *proxy, address string) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	time.Sleep(settle)
	idle, err := p.memory()
	if err != nil {
		return nil, err
	}
	for i := range min(s.connections, setting{Files: openFiles()}.Connections()) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		job := bodyOf(i%projects, s.body)
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", waitPath, len(job), job); err != nil {
			return nil, err
		}
	}
	waiting := m.stubs.wait(s.connections)
	if waiting == 0 {
		return nil, errors.New("no job reached an upstream")
	}
	time.Sleep(settle)
	full, err := p.memory()
	return []figure{
		{"idle MB", idle / 1e6},
		{"waiting jobs", float64(waiting)},
		{"KB/waiting job", (full - idle) / 1e3 / float64(waiting)},
		{"MB with them all", full / 1e6},
	}, err
}

// wait waits until so many jobs have reached the upstreams, or no more come, and returns how many did.
func (s *stubs) wait(wanted int) (n int) {
	for last, since := 0, time.Now(); n < wanted && time.Since(since) < patience; time.Sleep(50 * time.Millisecond) {
		if n = int(s.waiting.Load()); n > last {
			last, since = n, time.Now()
		}
	}
	return n
}
