//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// wrk submits jobs over so many connections, each one job at a time, for a while.
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
	switch {
	case l.Jobs == 0:
		return load{}, errors.New("no job was answered")
	case l.Failed*100 > l.Jobs:
		return load{}, fmt.Errorf("%d of %d jobs failed", l.Failed, l.Jobs)
	}
	return l, nil
}
