package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

// prog returns a program with one command.
func prog() Program {
	var commands struct {
		Do doCommand `cmd:"" help:"Do something."`
	}
	return Program{Name: "prog", Description: "Does.", Version: "1.2", Do: &commands}
}

type doCommand struct {
	End string `help:"How to end."`
}

func (c doCommand) Run(s Console) error {
	fmt.Fprintln(s.Out, "done")
	switch c.End {
	case "fault":
		return errors.Join(errors.New("the disk is full"), errors.New("so is the \x1b[2Jspare\u009b"))
	case "reported":
		return fmt.Errorf("check: %w", ErrReported)
	case "interrupted":
		return fmt.Errorf("%w in run 3", ErrInterrupted)
	}
	return nil
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"do"}, 0, "done\n", ""},
		{[]string{"do", "--end=fault"}, Fault, "done\n", "prog: the disk is full\nprog: so is the ?[2Jspare?\n"},
		{[]string{"do", "--end=reported"}, Fault, "done\n", ""},
		{[]string{"do", "--end=interrupted"}, interrupted, "done\n", "prog: interrupted in run 3\n"},
		{[]string{"do", "--ende=fault"}, Usage, "", "prog: unknown flag --ende, did you mean \"--end\"?; see prog --help\n"},
		{[]string{"--version"}, 0, "prog 1.2\n", ""},
	} {
		var out, err bytes.Buffer
		code := prog().Run(c.args, Console{Out: &out, Err: &err})
		assert.Equal(t, c.code, code, "%v", c.args)
		assert.Equal(t, c.out, out.String(), "%v", c.args)
		assert.Equal(t, c.err, err.String(), "%v", c.args)
	}
}

func TestVersion(t *testing.T) {
	assert.Empty(t, commitOf(&debug.BuildInfo{}))
	built := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "false"}}}
	assert.Equal(t, "0123456789ab", commitOf(built))
	built.Settings[1].Value = "true"
	assert.Equal(t, "0123456789ab-dirty", commitOf(built))

	commit = "fedcba"
	t.Cleanup(func() { commit = "" })
	assert.Equal(t, "1.2.3 (commit fedcba) "+runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH, Version("1.2.3"))
}

// A signal cancels the context with its name as the cause.
func TestContext(t *testing.T) {
	ctx, stop := Context()
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	<-ctx.Done()
	assert.ErrorIs(t, context.Cause(ctx), ErrInterrupted)
}

// shop returns a program whose commands use what this package adds to the library kong.
func shop() Program {
	var commands struct {
		Sell sellCommand `cmd:"" help:"Sell what there is."`
		Buy  doCommand   `cmd:"" help:"Buy what there is not."`
	}
	commands.Sell = sellCommand{Within: 2 * time.Second, Weight: 1 << 10}
	return Program{Name: "shop", Description: "Sells and buys.", Do: &commands}
}

type sellCommand struct {
	Item   string        `arg:"" help:"What is sold."`
	Each   float64       `required:"" help:"What each costs."`
	Weight settings.Size `help:"What each weighs."`
	Count  int           `short:"n" default:"1" placeholder:"N" help:"How many."`
	Within time.Duration `help:"How soon."`
	To     []string      `help:"Who gets it."`
}

func (s *sellCommand) Run(c Console) error {
	_, err := fmt.Fprintf(c.Out, "%s to %q\n", s.Item, s.To)
	return err
}

func TestInvalidCommandLines(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sel"}, `unexpected argument sel, did you mean "sell"?`},
		{[]string{"quarrel"}, `unexpected argument quarrel`},
		{[]string{"--versin"}, `unknown flag --versin, did you mean "--version"?`},
		{[]string{"sell", "tea"}, `missing flags: --each=FLOAT-64`},
		{[]string{"sell", "tea", "--each=1", "--weight=1x"}, `--weight: "1x" is not a size such as 65536, 512KiB, 64MiB or 1GiB`},
		{[]string{"buy", "more"}, `unexpected argument more`},
		{[]string{"buy", "shop.yaml"}, `unexpected argument shop.yaml; name a configuration file with --config`},
	} {
		p := shop()
		_, err := p.parse(c.args, Console{})
		assert.EqualError(t, err, c.want, "%q", c.args)
	}
}

// Each flag of a list takes one value, which can contain commas.
func TestValuesWithCommas(t *testing.T) {
	var out bytes.Buffer
	assert.Zero(t, shop().Run([]string{"sell", "tea", "--each=1", "--to=Ann, Bob", "--to=Eve"}, Console{Out: &out}))
	assert.Equal(t, "tea to [\"Ann, Bob\" \"Eve\"]\n", out.String())
}

func TestHelp(t *testing.T) {
	p := shop()
	for _, args := range [][]string{nil, {"help"}, {"--help"}} {
		var out bytes.Buffer
		assert.Zero(t, p.Run(args, Console{Out: &out}))
		for _, want := range []string{"Usage: shop <command>", "Sells and buys.", "Sell what there is.", "buy", "--version"} {
			assert.Contains(t, out.String(), want, "%q", args)
		}
	}
	for _, args := range [][]string{{"help", "sell"}, {"sell", "-h"}} {
		var out bytes.Buffer
		assert.Zero(t, p.Run(args, Console{Out: &out}))
		for _, want := range []string{"What is sold.", "--weight=1KiB", "--within=2s", "-n, --count=N", "How many. (default 1)"} {
			assert.Contains(t, out.String(), want, "%q", args)
		}
	}
}
