// Package cli is what the programs share: how a command line is run, how a YAML
// file that knows where its values stand is read and written, and how files and
// progress are written.
//
// The library kong reads command lines; the flags, arguments and help texts are tags of
// structs (Runner).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

// Console is where commands read and write.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
}

// Program is what a program says of itself, and what it does.
type Program struct {
	Name        string
	Description string    // for --help
	Version     string    // for --version
	Commands    []Command // what it can do
	Do          Runner    // what it does, in a program without commands
}

// Command is one of a program's commands.
type Command struct {
	Name  string
	About string // what it does, for --help
	Do    Runner
}

// Runner does what a command line asks for. It is a pointer to a struct whose fields are
// flags and arguments by the tags of the library kong. A field keeps the value that it has
// where neither a default nor the command line gives one.
type Runner interface {
	Run(c Console) error
}

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

// Run does what args ask for, and returns the program's exit code.
func (p Program) Run(args []string, c Console) (code int) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case exit:
			code = int(thrown)
		default:
			panic(thrown)
		}
	}()
	do, err := p.parse(args, c)
	if err != nil {
		fmt.Fprintf(c.Err, "%s: %v\n", p.Name, err)
		return Usage
	}
	switch err = do.Run(c); { // by the kind of its argument, kong finds the method
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

// commit is set by the linker where the build sees no repository, as in the image's.
var commit string

// Commit is the commit that the program was built from, or "" if that is not known.
func Commit() string {
	info, ok := debug.ReadBuildInfo()
	if commit != "" || !ok {
		return commit
	}
	return commitOf(info)
}

func commitOf(info *debug.BuildInfo) string {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	c := set["vcs.revision"]
	c = c[:min(12, len(c))]
	if set["vcs.modified"] == "true" {
		c += "-dirty"
	}
	return c
}

// Version is how a program names its version: the release, if it is one, the
// commit that it was built from, if that is known, and the platform.
func Version(release string) string {
	if c := Commit(); c != "" {
		release += " (commit " + c + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", release, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// IsTerminal reports whether a person reads what is written there.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
