package cli

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"
)

// exit is thrown when help or the version was printed: nothing else is to be done.
type exit int

// parse reads a command line. What it returns runs the command that was named.
func (p Program) parse(args []string, c Console) (*kong.Context, error) {
	var top struct {
		Version kong.VersionFlag `help:"Print the version."`
	}
	options := []kong.Option{
		kong.Name(p.Name), kong.Description(p.Description), kong.Vars{"version": p.Name + " " + p.Version},
		kong.Writers(c.Out, c.Err), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}), kong.ValueFormatter(describe),
		kong.PostBuild(prepare),
	}
	for _, command := range p.Commands {
		options = append(options, kong.DynamicCommand(command.Name, command.About, "", command.Do))
	}
	var grammar any = &struct{}{}
	if p.Do != nil {
		grammar = p.Do
	}
	parser, err := kong.New(grammar, append(options, kong.Embed(&top))...)
	if err != nil {
		panic("BUG: " + err.Error()) // a tag is wrong
	}
	if len(p.Commands) > 0 && (len(args) == 0 || args[0] == "help") {
		args = append(slices.Clone(args[min(1, len(args)):]), "--help")
	}
	return parser.Parse(args)
}

// helpWidth is the most characters of a line of help.
const helpWidth = 80

// describe is the help of a flag or argument, with the default that a placeholder hides.
func describe(v *kong.Value) string {
	if v.HasDefault && v.Tag.PlaceHolder != "" {
		return fmt.Sprintf("%s (default %s)", v.Help, v.Default)
	}
	return v.Help
}

// prepare makes the values that fields have their defaults, and lets each flag of a list
// take one value, commas and all.
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
