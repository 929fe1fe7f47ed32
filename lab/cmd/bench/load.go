//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// projects is how many projects the jobs have.
const projects = 5000

// bodies returns jobs of so many bytes. The project is the last member: a
// reader cannot stop early.
func bodies(size int) [][]byte {
	const most = 20 << 20 // bytes of all together
	all := make([][]byte, max(1, min(projects, most/size)))
	for i := range all {
		all[i] = bodyOf(i, size)
	}
	return all
}

func bodyOf(project, size int) []byte {
	end := fmt.Sprintf(`{}],"priority":"low","project_id":%d}`, project)
	const rule = `{"field":"title","action":"replace","value":"x","with":"y"},`
	b := []byte(`{"input":"s3://feeds/in.csv","rules":[`)
	for len(b)+len(rule)+len(end) < size {
		b = append(b, rule...)
	}
	b = append(b, bytes.Repeat([]byte(" "), max(0, size-len(b)-len(end)))...)
	return append(b, end...)
}

// load is what submitters saw.
type load struct {
	Jobs         int `json:"jobs"`
	Microseconds int `json:"microseconds"`
	P50          int `json:"p50"` // microseconds
	Failed       int `json:"failed"`
}

// loader submits jobs over so many connections, each one job at a time, for a while.
type loader interface {
	run(ctx context.Context, address string, connections int, d time.Duration) (load, error)
}

// wrk is the loader of that name.
type wrk struct {
	program, script, bodies string // paths
}

// newWrk writes what wrk needs into dir.
func newWrk(program, dir string, jobs [][]byte) (*wrk, error) {
	w := &wrk{program: program, script: filepath.Join(dir, "wrk.lua"), bodies: filepath.Join(dir, "bodies")}
	script, err := configs.ReadFile("config/wrk.lua")
	if err != nil {
		return nil, err
	}
	return w, errors.Join(
		os.WriteFile(w.script, script, 0o600),
		os.WriteFile(w.bodies, append(bytes.Join(jobs, []byte("\n")), '\n'), 0o600),
	)
}

func (w *wrk) run(ctx context.Context, address string, connections int, d time.Duration) (load, error) {
	ctx, cancel := context.WithTimeout(ctx, d+20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, w.program, "--threads", "1", "--connections", fmt.Sprint(connections),
		"--duration", fmt.Sprintf("%ds", max(1, int(d.Seconds()))), "--timeout", "10s", "--script", w.script, "http://"+address)
	command.Env = append(os.Environ(), "BODIES="+w.bodies)
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

func (l *load) check() error {
	switch {
	case l.Jobs == 0:
		return errors.New("no job was answered")
	case l.Failed*100 > l.Jobs:
		return fmt.Errorf("%d of %d jobs failed", l.Failed, l.Jobs)
	}
	return nil
}

// builtin is a loader for machines without wrk. It takes more of the processor.
type builtin struct {
	requests [][]byte
}

func newBuiltin(jobs [][]byte) *builtin {
	b := &builtin{requests: make([][]byte, len(jobs))}
	for i, j := range jobs {
		b.requests[i] = requestOf(http.MethodPost, jobPath, j)
	}
	return b
}

func requestOf(method, path string, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
}

func (b *builtin) run(ctx context.Context, address string, connections int, d time.Duration) (load, error) {
	var (
		mu      sync.Mutex
		times   []time.Duration
		failure error
		all     sync.WaitGroup
	)
	started := time.Now()
	for i := range connections {
		all.Go(func() {
			took, err := b.submit(ctx, address, i, started.Add(d))
			mu.Lock()
			defer mu.Unlock()
			times = append(times, took...)
			if err != nil {
				failure = err
			}
		})
	}
	all.Wait()
	if failure != nil {
		return load{}, failure
	}
	l := load{Jobs: len(times), Microseconds: int(time.Since(started).Microseconds())}
	if l.Jobs > 0 {
		slices.Sort(times)
		l.P50 = int(times[len(times)/2].Microseconds())
	}
	return l, l.check()
}

// submit submits jobs on one connection until the end, and at least one.
func (b *builtin) submit(ctx context.Context, address string, first int, end time.Time) (took []time.Duration, err error) {
	c, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for i := first; ctx.Err() == nil && (i == first || time.Now().Before(end)); i++ {
		started := time.Now()
		if _, err := c.exchange(b.requests[i%len(b.requests)]); err != nil {
			return took, err
		}
		took = append(took, time.Since(started))
	}
	return took, nil
}

// connection is a submitter's.
type connection struct {
	net.Conn
	in *bufio.Reader
}

// dial connects. What is done on the connection is bounded by half a minute after ctx's deadline.
func dial(ctx context.Context, address string) (*connection, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(time.Minute)
	if end, ok := ctx.Deadline(); ok {
		until = end.Add(30 * time.Second)
	}
	if err := c.SetDeadline(until); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &connection{Conn: c, in: bufio.NewReaderSize(c, 64<<10)}, nil
}

// exchange sends a request and reads the answer. It returns when the answer's first byte came.
func (c *connection) exchange(request []byte) (first time.Time, err error) {
	if _, err := c.Write(request); err != nil {
		return first, err
	}
	if _, err := c.in.Peek(1); err != nil {
		return first, err
	}
	first = time.Now()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return first, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var text strings.Builder
		_, _ = io.Copy(&text, io.LimitReader(res.Body, 500))
		return first, fmt.Errorf("status %d: %s", res.StatusCode, text.String())
	}
	_, err = io.Copy(io.Discard, res.Body)
	return first, err
}
