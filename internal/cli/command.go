package cli

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"example.org/pilotfish/internal/settings"
)

// What flags ask for instead of the command.
var (
	errHelp    = errors.New("help")
	errVersion = errors.New("version")
)

// command is a program or one of its commands, as help and the parser see it.
type command struct {
	path, about string // path is how it is called: the program's name, and its own
	do          Runner
	options     []*option // flags and arguments
	arguments   []*option
	flags       *pflag.FlagSet
	commands    []Command // of a program that has some; then do is nil
}

func newCommand(path, about string, do Runner) *command {
	c := &command{path: path, about: about, do: do, flags: pflag.NewFlagSet(path, pflag.ContinueOnError)}
	c.flags.SortFlags = false
	c.flags.SetOutput(io.Discard) // Run tells what is wrong
	c.flags.BoolFuncP("help", "h", "Show this help.", func(string) error { return errHelp })
	c.flags.BoolFunc("version", "Print the version.", func(string) error { return errVersion })
	if do != nil {
		c.read(reflect.ValueOf(do).Elem())
	}
	return c
}

// read takes the fields of a struct as the command's flags and arguments.
func (c *command) read(fields reflect.Value) {
	for i := range fields.NumField() {
		f, value := fields.Type().Field(i), fields.Field(i)
		help, isOption := f.Tag.Lookup("help")
		switch {
		case isOption:
			o := newOption(f, value)
			c.options = append(c.options, o)
			if o.argument {
				c.arguments = append(c.arguments, o)
				continue
			}
			flag := c.flags.VarPF(o, o.name, f.Tag.Get("short"), help)
			if o.isSwitch() {
				flag.NoOptDefVal = "true"
			}
		case value.Kind() == reflect.Struct && (f.Anonymous || f.IsExported()):
			c.read(value)
		}
	}
}

// parse reads a command line. It returns the command that was named, or the program
// where none was.
func (p Program) parse(args []string) (*command, error) {
	top := newCommand(p.Name, p.Description, p.Do)
	if p.Do != nil {
		return top, top.parse(args)
	}
	top.commands = p.Commands
	top.flags.SetInterspersed(false) // what follows the name of a command is for the command
	if err := top.parseFlags(args); err != nil {
		return top, err
	}
	named := top.flags.Arg(0)
	var names []string
	for _, sub := range p.Commands {
		if sub.Name == named {
			c := newCommand(p.Name+" "+sub.Name, sub.About, sub.Do)
			return c, c.parse(top.flags.Args()[1:])
		}
		names = append(names, strconv.Quote(sub.Name))
	}
	switch {
	case top.flags.NArg() > 0:
		return top, fmt.Errorf("unexpected argument %s%s", named, meant(named, names))
	case len(names) == 1:
		return top, fmt.Errorf("expected %s", names[0])
	}
	return top, fmt.Errorf("expected one of %s", strings.Join(names, ", "))
}

// meant is what was probably meant by a word. The words to choose from are in quotes.
func meant(word string, words []string) string {
	return strings.Replace(settings.DidYouMean(strconv.Quote(word), words), ";", ",", 1)
}

// parse reads the flags and arguments of the command, and checks them.
func (c *command) parse(args []string) error {
	if err := c.parseFlags(args); err != nil {
		return err
	}
	if err := c.take(c.flags.Args()); err != nil {
		return err
	}
	var missing []string
	for _, o := range c.options {
		if err := o.check(); err != nil {
			return err
		}
		if o.required && !o.given {
			missing = append(missing, o.usage())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
	}
	if v, ok := c.do.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

func (c *command) parseFlags(args []string) error {
	var (
		unknown *pflag.NotExistError
		nothing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	err := c.flags.Parse(args)
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = name[1:]
		}
		var names []string
		c.flags.VisitAll(func(f *pflag.Flag) { names = append(names, strconv.Quote("--"+f.Name)) })
		return fmt.Errorf("unknown flag %s%s", name, meant(name, names))
	case errors.As(err, &nothing):
		return fmt.Errorf("--%s: it needs a value", nothing.GetFlag().Name)
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, errors.Unwrap(invalid))
	}
	return err
}

// take reads the arguments.
func (c *command) take(args []string) error {
	for _, o := range c.arguments {
		n := min(1, len(args))
		if o.isList() {
			n = len(args)
		}
		if o.required && n == 0 {
			return fmt.Errorf("expected %q", o.title())
		}
		for _, text := range args[:n] {
			if err := o.Set(text); err != nil {
				return fmt.Errorf("%s: %w", o.title(), err)
			}
		}
		args = args[n:]
	}
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %s", args[0])
	}
	return nil
}
