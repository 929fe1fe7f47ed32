// Command tracelab compares policies: by simulation, and by replaying logs to real sidecars.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/judge"
	"example.org/pilotfish/lab/prompts"
	"example.org/pilotfish/lab/scenario"
	"example.org/pilotfish/lab/sources"
	"example.org/pilotfish/lab/trace"
)

var version = "devel" // the linker sets it when a release is built

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type commands struct {
	Simulate simulateCommand `cmd:"" help:"Simulate a scenario's runs and compare them."`
	Judge    judgeCommand    `cmd:"" help:"Compare the policy with tuned rivals on random settings. The seed is the hash of the policy's sources."`
	Prompts  promptsCommand  `cmd:"" help:"Compare routers of prompts to language models, on a trace of requests."`
	Replay   replayCommand   `cmd:"" help:"Send the jobs of access logs when they are due to one or more targets, and compare durations and waits."`
	Whatif   whatifCommand   `cmd:"" help:"Report from access logs what pilotfish would do for these jobs: hits, waits, upstreams needed."`
}

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name:        "tracelab",
		Description: "Compares policies in simulated time.",
		Version:     cli.Version(version),
		Do:          new(commands),
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}

type simulateCommand struct {
	Scenario string `arg:"" type:"path" help:"YAML file of the scenario."`
	HTML     string `name:"html" type:"path" placeholder:"FILE" help:"Write an HTML page with figures."`
	kept
}

func (c *simulateCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	s, err := scenario.Load(c.Scenario)
	if err != nil {
		return err
	}
	return c.keep(console, c.Scenario, sources.Simulated(), func(out io.Writer) error {
		s.Drawn = c.HTML != ""
		played := 0
		results, err := s.Play(ctx, runtime.GOMAXPROCS(0), func(what string) {
			played++
			fmt.Fprintf(console.Err, "%d/%d %s\n", played, len(s.Runs)*s.Seeds, what)
		})
		if err != nil {
			return err
		}
		return errors.Join(writePage(c.HTML, func(w io.Writer) error { return results.Page().WriteHTML(w) }), results.WriteText(out))
	})
}

// writePage writes a file, if it has a name.
func writePage(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

type judgeCommand struct {
	Root   string   `type:"path" default:"." placeholder:"DIR" help:"The repository with the sources to judge."`
	List   string   `type:"path" placeholder:"FILE" help:"Append a summary line to this file."`
	Drawn  bool     `help:"Simulate the algorithms of the five documents on one setting of each family instead."`
	Race   bool     `help:"Use the fleet and the jobs of make race instead."`
	Draw   string   `placeholder:"TEXT" help:"Use this text as the seed instead of the sources' hash, for tuning."`
	Family []string `placeholder:"NAME" help:"Judge only these families."`
}

func (c *judgeCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	hash, err := sources.Hash(c.Root, sources.Judged()...)
	if err != nil {
		return err
	}
	families := judge.Families()
	if c.Race {
		families = judge.Raced()
	}
	if len(c.Family) > 0 {
		families = slices.DeleteFunc(families, func(f judge.Family) bool { return !slices.Contains(c.Family, f.Name) })
	}
	switch {
	case len(families) == 0:
		return fmt.Errorf("--family: unknown: %v", c.Family)
	case c.List != "" && (c.Race || c.Drawn || c.Draw != "" || len(c.Family) > 0):
		return errors.New("--list cannot be combined with --race, --drawn, --draw or --family")
	}
	if c.Drawn {
		return judge.PlayDocuments(ctx, console.Out, cmp.Or(c.Draw, hash), families)
	}
	start := time.Now()
	j, err := judge.Judge(ctx, cmp.Or(c.Draw, hash), families, func(ended, all int) {
		fmt.Fprintf(console.Err, "%d/%d settings after %v\n", ended, all, time.Since(start).Round(time.Second))
	})
	if err != nil {
		return err
	}
	if c.List != "" {
		if err := add(c.List, j.Line()); err != nil {
			return err
		}
		list, err := os.ReadFile(c.List)
		if err != nil {
			return err
		}
		j.Ledger = judge.Medians(string(list))
	}
	return j.WriteText(console.Out)
}

// add appends a line to a file.
func add(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

type promptsCommand struct {
	Trace string `arg:"" optional:"" type:"existingfile" help:"A trace of Mooncake; by default an hour of generated chats."`
	kept
}

func (c *promptsCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	requests := prompts.Invent(1)
	if c.Trace != "" {
		var err error
		if requests, err = trace.Prompts(c.Trace); err != nil {
			return err
		}
	}
	return c.keep(console, c.Trace, sources.Prompts(), func(out io.Writer) error { return prompts.Compare(requests).WriteText(ctx, out) })
}
