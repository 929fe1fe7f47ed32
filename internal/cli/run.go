// Package cli is what the programs share: how a command line is run, how a YAML
// file that knows where its values stand is read and written, and how files and
// progress are written.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Console is where commands read and write.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
}

// Program is what a program says of itself.
type Program struct {
	Name        string
	Description string // for --help
	Version     string // for --version
}

// VersionFlag is a flag --version in a grammar.
type VersionFlag = kong.VersionFlag

// The errors of a command that ask for something other than their text on
// standard error and exit code 1.
var (
	// ErrReported: the command has already told what is wrong.
	ErrReported = errors.New("reported")
	// ErrInterrupted: Ctrl-C or SIGTERM ended the command before its end; the exit code is 130.
	ErrInterrupted = errors.New("interrupted")
)

// The exit codes.
const (
	Fault       = 1   // found while running
	Usage       = 2   // the command line makes no sense
	interrupted = 130 // ended by Ctrl-C or SIGTERM
)

// Run parses args by the grammar, a pointer to a struct that kong reads, and runs
// the command that they name: a method Run(Console) error. A grammar may have a
// method Defaults() map[string]string: the values of ${name} in its tags. Run
// returns the program's exit code.
func (p Program) Run(grammar any, args []string, c Console) int {
	exited := -1
	vars := kong.Vars{"version": p.Name + " " + p.Version}
	if g, ok := grammar.(interface{ Defaults() map[string]string }); ok {
		maps.Copy(vars, g.Defaults())
	}
	parser, err := kong.New(grammar,
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Writers(c.Out, c.Err),
		kong.Exit(func(code int) { exited = code }),
		kong.UsageOnError(),
		vars,
	)
	if err != nil {
		panic("BUG: the command line is declared wrong: " + err.Error())
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help, --version
	}
	if err != nil {
		fmt.Fprintf(c.Err, "%s: %v\n", p.Name, err)
		return Usage
	}
	err = command.Run(c)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrReported):
		return Fault
	}
	for line := range strings.Lines(err.Error()) { // several faults are joined
		fmt.Fprintf(c.Err, "%s: %s\n", p.Name, strings.TrimSuffix(line, "\n"))
	}
	if errors.Is(err, ErrInterrupted) {
		return interrupted
	}
	return Fault
}

// Context ends at Ctrl-C or SIGTERM, with ErrInterrupted as its cause; or at
// stop. A second signal ends the process at once.
func Context() (ctx context.Context, stop func()) {
	signals, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	context.AfterFunc(signals, func() {
		stop()
		cancel(ErrInterrupted)
	})
	return ctx, stop
}

// Version is how a program names its version: the release, if it is one, the
// commit that it was built from, if that is known, and the platform.
func Version(release string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return version(release, info)
}

func version(release string, info *debug.BuildInfo) string {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	text := release
	if commit := set["vcs.revision"]; commit != "" {
		text += " (commit " + commit[:min(12, len(commit))]
		if set["vcs.modified"] == "true" {
			text += ", with changes"
		}
		text += ")"
	}
	return fmt.Sprintf("%s %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
