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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
