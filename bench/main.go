//go:build linux

// Command bench measures what pilotfish costs beside what a user would run
// instead: CPU time of the proxy for each job, time added to an answer, and memory.
// Everything runs on loopback, for a bounded time.
package main

import (
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name:        "bench",
		Description: "Measures what pilotfish costs beside its peers.",
		Version:     cli.Version("devel"),
		Commands: []cli.Command{
			{Name: "compare", About: "Measure pilotfish and its peers in interleaved rounds, and print tables.", Do: new(compareCommand)},
			{Name: "mesh", About: "Run an Envoy that asks pilotfish (compare starts this).", Do: new(meshCommand)},
			{Name: "profile", About: "Show where the processor time of a job goes in pilotfish.", Do: new(profileCommand)},
			{Name: "upstreams", About: "Serve jobs that cost nothing (compare starts this).", Do: new(upstreamsCommand)},
			{Name: "reverse-proxy", About: "Forward with net/http/httputil's ReverseProxy (compare starts this).", Do: new(reverseProxyCommand)},
			{Name: "relay", About: "Forward TCP connections without reading them (compare starts this).", Do: new(relayCommand)},
		},
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}
