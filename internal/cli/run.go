// Package cli is what the programs share: how a command line is run, how a YAML
// file that knows where its values stand is read and written, and how files and
// progress are written.
//
// The library pflag reads command lines; the flags, arguments and help texts are tags of
// structs (Runner). Larger libraries were tried. With kong the linker keeps every exported
// method of every type, which internal/arch forbids, because kong looks methods up by name.
// cobra does not, but it has no tags: a field, a call for each flag and a constructor for
// each command are longer than what reads the tags here. go-flags and go-arg have tags, but
// tell faults in terms of Go: strconv.ParseInt, time.Duration.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Runner does what a command line asks for. It is a pointer to a struct: each field
// with a tag help is a flag, or an argument. Other fields that are structs may have
// further ones. These are the tags:
//
//	help:"TEXT"        what it is for
//	arg:""             it is an argument, optional:"" where it may be missing
//	name:"NAME"        its name, where it is not the field's in lower case with hyphens
//	short:"X"          a flag's name in one letter
//	default:"TEXT"     its value when it is not given, where the field does not hold that yet
//	required:""        it must be given
//	enum:"A,B"         the values that it can have
//	placeholder:"X"    what help shows in place of its value
//	type:"KIND"        path, existingfile or existingdir: the name of a file, which is made absolute
//
// A Runner may have a method Validate() error, which is called before Run: its error is
// one of the command line.
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
func (p Program) Run(args []string, c Console) int {
	command, err := p.parse(args)
	switch {
	case errors.Is(err, errHelp):
		err = command.help(c.Out)
	case errors.Is(err, errVersion):
		_, err = fmt.Fprintln(c.Out, p.Name, p.Version)
	case err != nil:
		fmt.Fprintf(c.Err, "%s: %v\n", p.Name, err)
		return Usage
	default:
		err = command.do.Run(c)
	}
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
