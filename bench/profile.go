//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
)

type profileCommand struct {
	Pilotfish   []string      `default:"pilotfish=bin/pilotfish" placeholder:"NAME=PATH" help:"A pilotfish to profile; repeat to compare versions."`
	Rounds      int           `default:"3" help:"How often each is profiled."`
	Duration    time.Duration `default:"10s" help:"How long each load lasts, in whole seconds."`
	Connections int           `default:"32" help:"How many jobs there are at one time."`
	Builtin     bool          `help:"Submit without wrk."`
}

// part is a part of a job's way: what a stack stands for in which one of the functions is.
type part struct {
	name      string
	functions []string
}

// parts are looked through in order; the first that a stack has is the one that it counts for.
var parts = []part{
	{"collecting garbage", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcAssistAlloc", "runtime.gcStart"}},
	{"writing to the upstream", []string{"upstreamclient.(*sending).write", "upstreamclient.(*Client).Do;lazyconn.(*Conn).put"}},
	{"writing to the submitter", []string{"submitterserver.(*response).send", "net/http.checkConnErrorWriter.Write"}},
	{"reading from the upstream", []string{"upstreamclient.(*Client).Do;lazyconn.(*Conn).Ask", "upstreamclient.(*Client).Do;lazyconn.(*Conn).Await",
		"upstreamclient.(*pool).connect;lazyconn.(*Conn).More"}},
	{"reading from the submitter", []string{"net/http.(*connReader).Read", "net/http.(*connReader).backgroundRead",
		"submitterserver.(*conn).await;lazyconn.(*Conn).Await", "submitterserver.(*body).Read;lazyconn.(*Conn).Read"}},
	{"parsing the request's head", []string{"net/http.readRequest"}},
	{"parsing the response's head", []string{"net/http.ReadResponse"}},
	{"taking in the body", []string{"intake.ReadBody"}},
	{"reading the job's members", []string{"intake.(*Reader).Describe"}},
	{"choosing and counting", []string{"internal/balancer."}},
	{"the log line", []string{"logging.(*Jobs).Write", "logging.(*lineBuffer)"}},
	{"metrics, quality, page", []string{"main.(*sidecar).observe"}},
	{"the upstream client's rest", []string{"internal/proxy/upstreamclient."}},
	{"the proxy's rest", []string{"internal/proxy.(*Proxy).ServeHTTP"}},
	{"the server's rest", []string{"internal/proxy/submitterserver.", "net/http.(*conn).serve", "net/http.(*Server)"}},
	{"scheduler and poller", []string{"runtime.mcall", "runtime.schedule", "runtime.sysmon", "runtime.netpoll", "runtime.mstart"}},
	{"anything else", []string{""}},
}

// has reports whether a stack belongs to the part. A semicolon stands between two
// functions that must both be there.
func (p part) has(stack string) bool {
	return slices.ContainsFunc(p.functions, func(f string) bool {
		for one := range strings.SplitSeq(f, ";") {
			if !strings.Contains(stack, one) {
				return false
			}
		}
		return true
	})
}

// Run prints where the processor time of a job goes: the time that the kernel
// accounts for, shared out by the samples of the profile.
func (c *profileCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	spent := map[string]map[string][]float64{} // by part and name
	var names []string
	for range c.Rounds {
		for _, named := range c.Pilotfish {
			name, _, _ := strings.Cut(named, "=")
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			p := pilotfishPeer(named)
			if p.program == "" {
				return fmt.Errorf("%s is not installed; make build", named)
			}
			times, err := c.profile(ctx, dir, self, &p)
			if err != nil {
				return err
			}
			for part, us := range times {
				if spent[part] == nil {
					spent[part] = map[string][]float64{}
				}
				spent[part][name] = append(spent[part][name], us)
			}
		}
	}
	fmt.Fprintf(console.Out, "%s\n\nCPU microseconds a job, %d connections, jobs of 4 KB\n\n| |%s|\n|---|%s\n", machineName(), c.Connections,
		strings.Join(names, "|"), strings.Repeat("---|", len(names)))
	for _, p := range append(slices.Clone(parts), part{name: total}) {
		fmt.Fprintf(console.Out, "|%s|", p.name)
		for _, name := range names {
			fmt.Fprintf(console.Out, "%s|", spread(spent[p.name][name]))
		}
		fmt.Fprintln(console.Out)
	}
	return nil
}

const total = "all"

// profile profiles a pilotfish under load, and returns the microseconds of each part.
func (c *profileCommand) profile(ctx context.Context, dir, self string, p *peer) (map[string]float64, error) {
	const upstreams = 4
	stubs, err := start(filepath.Join(dir, "upstreams"), self, "upstreams", "--ports", fmt.Sprint(upstreams))
	if err != nil {
		return nil, err
	}
	defer stubs.stop()
	addresses, err := stubs.addresses(ctx, upstreams)
	if err != nil {
		return nil, err
	}
	jobs := bodies(4 << 10)
	var load loader = newBuiltin(jobs)
	if path := installed("wrk"); path != "" && !c.Builtin {
		if load, err = newWrk(path, dir, jobs); err != nil {
			return nil, err
		}
	}
	proxy, address, err := p.start(ctx, dir, addresses, 4<<10)
	if err != nil {
		return nil, err
	}
	defer proxy.stop()
	if _, err := load.run(ctx, address, c.Connections, time.Second); err != nil { // warms up
		return nil, err
	}
	file := filepath.Join(dir, "profile")
	fetched := make(chan error, 1)
	go func() { fetched <- fetchProfile(ctx, p.admin, file, c.Duration) }()
	before, err := proxy.cpu()
	if err != nil {
		return nil, err
	}
	l, err := load.run(ctx, address, c.Connections, c.Duration)
	if err != nil {
		return nil, err
	}
	after, err := proxy.cpu()
	if err != nil {
		return nil, err
	}
	if err := <-fetched; err != nil {
		return nil, err
	}
	traces, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", p.program, file).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof: %w", err)
	}
	return share(traces, float64((after-before).Microseconds())/float64(l.Jobs)), nil
}

// fetchProfile has a pilotfish profile itself while it is under load.
func fetchProfile(ctx context.Context, admin, file string, d time.Duration) error {
	seconds := max(1, int(d.Seconds())-1)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", admin, seconds), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	defer to.Close()
	_, err = io.Copy(to, res.Body)
	return err
}

// share shares the time of a job out among the parts, by the stacks of a profile as
// go tool pprof -traces prints them.
func share(traces []byte, each float64) map[string]float64 {
	counts := map[string]time.Duration{}
	var stack strings.Builder
	var took time.Duration
	count := func() {
		if took > 0 {
			i := slices.IndexFunc(parts, func(p part) bool { return p.has(stack.String()) })
			counts[parts[i].name] += took
			counts[total] += took
		}
		stack.Reset()
		took = 0
	}
	lines := bufio.NewScanner(bytes.NewReader(traces))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-----") {
			count()
			continue
		}
		fields := strings.Fields(line)
		if len(fields) >= 2 && stack.Len() == 0 {
			if d, err := time.ParseDuration(fields[0]); err == nil {
				took, line = d, fields[1]
			}
		}
		if took > 0 {
			stack.WriteString(line + "\n")
		}
	}
	count()
	times := map[string]float64{}
	for part, d := range counts {
		times[part] = each * d.Seconds() / counts[total].Seconds()
	}
	return times
}
