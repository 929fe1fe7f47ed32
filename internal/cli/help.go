package cli

import (
	"fmt"
	"io"
	"strings"
)

const helpWidth = 80 // characters of a line

// help writes what the command does and takes.
func (c *command) help(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s%s\n", c.path, c.usage())
	if c.about != "" {
		b.WriteString("\n" + wrapped(c.about, ""))
	}
	if len(c.arguments) > 0 {
		b.WriteString("\nArguments:\n")
	}
	for _, o := range c.arguments {
		text := o.tag.Get("help")
		if o.initial != "" {
			text += " (default " + o.initial + ")"
		}
		fmt.Fprintf(&b, "  %s\n%s", o.usage(), wrapped(text, "    "))
	}
	b.WriteString("\nFlags:\n" + c.flags.FlagUsagesWrapped(helpWidth))
	if len(c.commands) > 0 {
		b.WriteString("\nCommands:")
	}
	for _, sub := range c.commands {
		fmt.Fprintf(&b, "\n  %s%s\n%s", sub.Name, newCommand("", "", sub.Do).usage(), wrapped(sub.About, "    "))
	}
	if len(c.commands) > 0 {
		fmt.Fprintf(&b, "\nRun \"%s <command> --help\" for more information on a command.\n", c.path)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// usage is what follows the command's name.
func (c *command) usage() string {
	if len(c.commands) > 0 {
		return " <command> [flags]"
	}
	var text string
	for _, o := range c.options {
		if o.required && !o.argument {
			text += " " + o.usage()
		}
	}
	for _, o := range c.arguments {
		text += " " + o.usage()
	}
	return text + " [flags]"
}

// wrapped is a text in lines, each behind an indent.
func wrapped(text, indent string) string {
	var b strings.Builder
	line := indent
	for _, word := range strings.Fields(text) {
		if line != indent && len(line)+1+len(word) > helpWidth {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
