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

// prepare writes what wrk needs for jobs of so many bytes.
func (m *machine) prepare(size int) error {
	script, err := configs.ReadFile("config/wrk.lua")
	return errors.Join(err,
		os.WriteFile(filepath.Join(m.dir, "wrk.lua"), script, 0o600),
		os.WriteFile(filepath.Join(m.dir, "bodies"), append(bytes.Join(bodies(size), []byte("\n")), '\n'), 0o600),
	)
}

// load has wrk submit jobs over so many connections, each one job at a time, for a while.
func (m *machine) load(ctx context.Context, address string, connections int, d time.Duration) (load, error) {
	ctx, cancel := context.WithTimeout(ctx, d+20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, m.wrk, "--threads", "1", "--connections", fmt.Sprint(connections),
		"--duration", fmt.Sprintf("%ds", max(1, int(d.Seconds()))), "--timeout", "10s", "--script", filepath.Join(m.dir, "wrk.lua"), "http://"+address)
	command.Env = append(os.Environ(), "BODIES="+filepath.Join(m.dir, "bodies"))
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
