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

type commands struct {
	Compare      compareCommand      `cmd:"" help:"Measure pilotfish and its peers in interleaved rounds, and print tables."`
	Mesh         meshCommand         `cmd:"" help:"Run an Envoy that asks pilotfish (compare starts this)."`
	Profile      profileCommand      `cmd:"" help:"Show where the processor time of a job goes in pilotfish."`
	Upstreams    upstreamsCommand    `cmd:"" help:"Serve jobs that cost nothing (compare starts this)."`
	ReverseProxy reverseProxyCommand `cmd:"" help:"Forward with net/http/httputil's ReverseProxy (compare starts this)."`
	Relay        relayCommand        `cmd:"" help:"Forward TCP connections without reading them (compare starts this)."`
}

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{Name: "bench", Description: "Measures what pilotfish costs beside its peers.", Version: cli.Version("devel")}
	return p.Run(new(commands), args, cli.Console{Out: stdout, Err: stderr})
}
