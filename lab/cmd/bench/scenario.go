//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// scenario is one kind of load that every peer is measured with.
type scenario struct {
	name        string
	upstreams   int
	body        int // bytes
	connections int
	waits       bool // the jobs get no response, and memory is measured
	deep        bool // bodies are nested, and responses have 2 KB
	header      bool // the project is in a header too
	rate        int  // jobs per second in an open loop; 0: a closed loop, each connection sends its next job after a response
}

// scenarios returns all scenarios. waiting is the number of jobs in the one that measures memory.
func scenarios(waiting int) (all []scenario) {
	const kb = 1 << 10
	for _, s := range []scenario{
		{name: "4 KB", body: 4 * kb}, {name: "4 KB deep", body: 4 * kb, deep: true}, {name: "4 KB", body: 4 * kb, rate: 500}, {name: "4 KB", body: 4 * kb, rate: 2000},
		{name: "4 KB", body: 4 * kb, connections: 1}, {name: "4 KB", body: 4 * kb, connections: 8}, {name: "4 KB", body: 4 * kb, connections: 256}, {name: "4 KB with a header", body: 4 * kb, header: true}, {name: "64 KB", body: 64 * kb},
		{name: "1 MB", body: 1024 * kb}, {name: "4 KB", upstreams: 14, body: 4 * kb}, {name: "4 KB", upstreams: 300, body: 4 * kb},
	} {
		s.upstreams, s.connections = cmp.Or(s.upstreams, 4), cmp.Or(s.connections, 32)
		load := fmt.Sprintf("%d connections", s.connections)
		if s.rate > 0 {
			load = fmt.Sprintf("%d a second", s.rate)
		}
		s.name = fmt.Sprintf("%s jobs, %s, %d upstreams", s.name, load, s.upstreams)
		all = append(all, s)
	}
	return append(all, scenario{name: fmt.Sprintf("%d jobs of 4 KB that wait", waiting), upstreams: 4, body: 4 * kb, connections: waiting, waits: true})
}

const (
	settle     = time.Second      // pause before memory is measured
	longestGap = 15 * time.Second // without a further waiting job
)

// underLoad measures CPU time per job, throughput and latency of a peer at its address; nil is no proxy.
func (c *compareCommand) underLoad(ctx context.Context, s *scenario, p *proxy, address string) ([]figure, error) {
	if _, err := c.load(ctx, address, s, min(c.Duration, time.Second)); err != nil { // warms up
		return nil, err
	}
	before, err := p.cpu()
	if err != nil {
		return nil, err
	}
	l, err := c.load(ctx, address, s, c.Duration)
	if err != nil {
		return nil, err
	}
	after, err := p.cpu()
	figures := []figure{
		{cpuPerJob, (after - before) * 1e6 / float64(l.Jobs)}, {"jobs/s", float64(l.Jobs) / (float64(l.Microseconds) / 1e6)}, {latency, float64(l.P50)},
	}
	if s.rate > 0 {
		figures = append(figures, figure{"p99 us", float64(l.P99)}, figure{"p99.9 us", float64(l.P999)})
	}
	if p == nil || s.rate > 0 { // at a fixed rate, CPU time is too short for the resolution of its clock
		figures = figures[1:]
	}
	return figures, err
}

// memory measures the peer's memory while it is idle, and per waiting job.
func (c *compareCommand) memory(ctx context.Context, s *scenario, p *proxy, address string) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	time.Sleep(settle)
	idle, err := p.memory()
	if err != nil {
		return nil, err
	}
	for i := range min(s.connections, setting{Files: openFiles()}.Connections()) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		job := bodyOf(i%projects, s)
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", waitPath, len(job), job); err != nil {
			return nil, err
		}
	}
	waiting := c.stubs.wait(s.connections)
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

// wait waits until wanted jobs have reached the upstreams, or no more arrive, and returns how many did.
func (s *stubs) wait(wanted int) (n int) {
	for last, since := 0, time.Now(); n < wanted && time.Since(since) < longestGap; time.Sleep(50 * time.Millisecond) {
		if n = int(s.waiting.Load()); n > last {
			last, since = n, time.Now()
		}
	}
	return n
}

// projects is how many projects the jobs have.
const projects = 5000

// bodies returns the bodies of the scenario's jobs. The project is the last member, so
// that a reader cannot stop early.
func bodies(s *scenario) [][]byte {
	const most = 20 << 20 // bytes in total
	all := make([][]byte, max(1, min(projects, most/s.body)))
	for i := range all {
		all[i] = bodyOf(i, s)
	}
	return all
}

func bodyOf(project int, s *scenario) []byte {
	end := fmt.Sprintf(`{}],"priority":"low","project_id":%d}`, project)
	rule, size := `{"field":"title","action":"replace","value":"x","with":"y"},`, s.body
	if s.deep {
		rule = `{"when":{"all":[{"not":{"any":[{"field":"title","like":{"text":"^[a-z]+$","flags":["i","u"]}}]}}]},"then":[{"set":{"price":{"in":"EUR","is":12.5,"of":[[1,2],[3,[4,5]]]}}}]},`
	}
	b := []byte(`{"input":"s3://feeds/in.csv","rules":[`)
	for len(b)+len(rule)+len(end) < size {
		b = append(b, rule...)
	}
	b = append(b, bytes.Repeat([]byte(" "), max(0, size-len(b)-len(end)))...)
	return append(b, end...)
}

// load is the submitters' measurements.
type load struct {
	Jobs         int `json:"jobs"`
	Microseconds int `json:"microseconds"`
	P50          int `json:"p50"` // microseconds, like P99 and P999
	P99          int `json:"-"`
	P999         int `json:"-"`
	Failed       int `json:"failed"`
}

// prepare writes the files that wrk reads for the scenario.
func (c *compareCommand) prepare(s *scenario) error {
	c.bodies = bodies(s)
	script, err := configs.ReadFile("config/wrk.lua")
	return errors.Join(err,
		os.WriteFile(filepath.Join(c.dir, "wrk.lua"), script, 0o600),
		os.WriteFile(filepath.Join(c.dir, "bodies"), append(bytes.Join(c.bodies, []byte("\n")), '\n'), 0o600),
	)
}

// path returns the path of a scenario's jobs.
func (s *scenario) path() string {
	if s.deep {
		return deepPath
	}
	return jobPath
}

// load submits jobs for a duration: by wrk in a closed loop, or at the scenario's rate.
func (c *compareCommand) load(ctx context.Context, address string, s *scenario, d time.Duration) (load, error) {
	if s.rate > 0 {
		return c.paced(ctx, address, s, d)
	}
	ctx, cancel := context.WithTimeout(ctx, d+20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, c.wrk, "--threads", "1", "--connections", fmt.Sprint(s.connections),
		"--duration", fmt.Sprintf("%ds", max(1, int(d.Seconds()))), "--timeout", "10s", "--script", filepath.Join(c.dir, "wrk.lua"), "http://"+address)
	project := "" // header with the project
	if s.header {
		project = "X-Project"
	}
	command.Env = append(os.Environ(), "BODIES="+filepath.Join(c.dir, "bodies"), "JOB_PATH="+s.path(), "PROJECT_HEADER="+project)
	text, err := command.CombinedOutput()
	if err != nil {
		return load{}, fmt.Errorf("wrk: %w: %s", err, text)
	}
	text = bytes.TrimSpace(text)
	var l load
	if err := json.Unmarshal(text[bytes.LastIndexByte(text, '\n')+1:], &l); err != nil {
		return load{}, fmt.Errorf("wrk's output: %w: %s", err, text)
	}
	return l, l.check()
}

// check returns an error if the figures are meaningless.
func (l load) check() error {
	switch {
	case l.Jobs == 0:
		return errors.New("no job got a response")
	case l.Failed*100 > l.Jobs:
		return fmt.Errorf("%d of %d jobs failed", l.Failed, l.Jobs)
	}
	return nil
}
