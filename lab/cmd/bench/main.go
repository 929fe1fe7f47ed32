//go:build linux

// Command bench compares pilotfish with the proxies that a user would run instead: CPU time per job, added
// latency, memory, and how long jobs wait. Everything runs on loopback, for a bounded time.
package main

import (
	"io"
	"os"
	"time"

	"example.org/pilotfish/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type commands struct {
	Compare compareCommand `cmd:"" help:"Measure pilotfish and its peers in interleaved rounds, and print tables."`
	Race    raceCommand    `cmd:"" help:"Send the same jobs through pilotfish and its peers, to reference servers, and compare waits."`
}

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name:        "bench",
		Description: "Measures what pilotfish costs beside its peers.",
		Version:     cli.Version("devel"),
		Do:          &commands{Compare: compareCommand{waiting: 10_000}, Race: raceCommand{length: 210 * time.Second, jobs: 1400}},
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}
