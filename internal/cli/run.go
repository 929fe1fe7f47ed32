// Package cli is what the three programs share: how a command line is run, how a
// YAML file that knows where its values stand is read, and how files and progress
// are written.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Console is where commands write.
type Console struct{ Out, Err io.Writer }

// The errors of a command that ask for something other than their text on
// standard error and exit code 1.
var (
	// ErrReported: the command has already told what is wrong.
	ErrReported = errors.New("reported")
	// ErrInterrupted: Ctrl-C or SIGTERM ended the command before its end; the exit code is Interrupted.
	ErrInterrupted = errors.New("interrupted")
)

// The exit codes.
const (
	Fault       = 1   // found while running
	Usage       = 2   // the command line makes no sense
	Interrupted = 130 // ended by Ctrl-C or SIGTERM
)

// Run parses args by the grammar, a pointer to a struct that kong reads, and runs
// the command that they name: a method Run(Console) error. A grammar may have a
// method Defaults() map[string]string: the values of ${name} in its tags. Run
// returns the program's exit code.
func Run(name, description string, grammar any, args []string, c Console) int {
	exited := -1
	var vars kong.Vars
	if g, ok := grammar.(interface{ Defaults() map[string]string }); ok {
		vars = g.Defaults()
	}
	parser, err := kong.New(grammar,
		kong.Name(name),
		kong.Description(description),
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
		return exited // --help
	}
	if err != nil {
		fmt.Fprintf(c.Err, "%s: %v\n", name, err)
		return Usage
	}
	err = command.Run(c)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrReported):
		return Fault
	}
	fmt.Fprintf(c.Err, "%s: %v\n", name, err)
	if errors.Is(err, ErrInterrupted) {
		return Interrupted
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
