// Package cli runs command lines, and reads and writes YAML files with the line and column of
// each value.
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
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// Console is the output of commands.
type Console struct{ Out, Err io.Writer }

// Program is the description and the commands of a program.
type Program struct {
	Name        string
	Description string // for --help
	Version     string // for --version
	// Do is a pointer to a struct whose fields are commands, or flags and arguments, with the tags of
	// the library kong. Commands have a method Run(Console) error. The value of a field is its
	// default, unless a tag or the command line sets another one.
	Do any
}

// Errors that Program.Run handles specially when a command returns them. Other errors are written to standard error, and the exit code is 1.
var (
	// ErrReported: the command has already written what is wrong.
	ErrReported = errors.New("reported")
	// ErrInterrupted: Ctrl-C or SIGTERM ended the command before its end; the exit code is 130.
	ErrInterrupted = errors.New("interrupted")
)

// The exit codes.
const (
	Fault       = 1   // found while running
	Usage       = 2   // the command line is invalid
	interrupted = 130 // ended by Ctrl-C or SIGTERM
)

// Run runs a command line and returns the program's exit code.
func (p Program) Run(args []string, c Console) int {
	do, err := p.parse(args, c)
	switch {
	case err != nil:
		fmt.Fprintf(c.Err, "%s: %s; see %s --help\n", p.Name, Plain(err.Error()), p.Name)
		return Usage
	case do == nil:
		return 0
	}
	switch err = do.Run(c); {
	case err == nil:
		return 0
	case errors.Is(err, ErrReported):
		return Fault
	}
	for line := range strings.Lines(err.Error()) { // several faults are joined
		fmt.Fprintf(c.Err, "%s: %s\n", p.Name, Plain(strings.TrimSuffix(line, "\n")))
	}
	if errors.Is(err, ErrInterrupted) {
		return interrupted
	}
	return Fault
}

// parse parses a command line and returns the command to run, or nil if it has printed help or
// the version.
func (p Program) parse(args []string, c Console) (*kong.Context, error) {
	shown := false
	var top struct {
		Version kong.VersionFlag `help:"Print the version."`
	}
	parser, err := kong.New(p.Do,
		kong.Name(p.Name), kong.Description(p.Description), kong.Vars{"version": p.Name + " " + p.Version},
		kong.Writers(c.Out, c.Err), kong.Exit(func(int) { shown = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}), kong.ValueFormatter(describe),
		kong.PostBuild(prepare), kong.Embed(&top),
	)
	if err != nil {
		panic("BUG: " + err.Error()) // a tag is wrong
	}
	if len(parser.Model.Children) > 0 && (len(args) == 0 || args[0] == "help") {
		args = append(slices.Clone(args[min(1, len(args)):]), "--help")
	}
	do, err := parser.Parse(args)
	if shown {
		return nil, nil
	}
	if err != nil && strings.HasPrefix(err.Error(), "unexpected argument ") && strings.HasSuffix(err.Error(), ".yaml") {
		err = fmt.Errorf("%w; name a configuration file with --config", err)
	}
	return do, err
}

// helpWidth bounds a line of help, in characters.
const helpWidth = 80

// describe returns the help of a flag or argument, with the default that its placeholder hides.
func describe(v *kong.Value) string {
	if v.HasDefault && v.Tag.PlaceHolder != "" {
		return fmt.Sprintf("%s (default %s)", v.Help, v.Default)
	}
	return v.Help
}

// prepare makes the values of fields their defaults. Each flag of a list takes one value, which
// can contain commas.
func prepare(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		value, ok := node.(*kong.Value)
		if flag, isFlag := node.(*kong.Flag); isFlag {
			value, ok = flag.Value, true
		}
		if ok && value.IsSlice() {
			value.Tag.Sep = -1
		}
		if ok && !value.HasDefault && !value.IsSlice() && !value.Target.IsZero() {
			value.HasDefault, value.Default = true, fmt.Sprint(value.Target.Interface())
		}
		return next(nil)
	})
}

// Context returns a context that ends at Ctrl-C, at SIGTERM or when stop is called. Its cause is then
// ErrInterrupted. A second signal ends the process at once.
func Context() (ctx context.Context, stop func()) {
	signals, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	context.AfterFunc(signals, func() {
		stop()
		cancel(ErrInterrupted)
	})
	return ctx, stop
}

// commit is set by the linker if the build has no repository, as for the image.
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

// Version is the text for --version: release, commit if it is known, and platform.
func Version(release string) string {
	if c := Commit(); c != "" {
		release += " (commit " + c + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", release, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Count formats a number of things.
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Plain replaces the control characters of a text, which could steer a terminal, by question marks.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// IsTerminal reports whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
