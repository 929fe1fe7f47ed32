package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "text", string(text))

	fault := errors.New("no words")
	err = WriteFile(path, func(io.Writer) error { return fault })
	assert.ErrorIs(t, err, fault)
	assert.EqualError(t, err, path+": no words")
	assert.ErrorIs(t, WriteFile(filepath.Join(path, "f"), nil), syscall.ENOTDIR)
}

func TestCheckDirectory(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, CheckDirectory(dir))
	assert.ErrorIs(t, CheckDirectory(filepath.Join(dir, "absent")), os.ErrNotExist)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.EqualError(t, CheckDirectory(file), file+" is not a directory")
}

// Where there is no terminal, there are only lines.
func TestProgressWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := StartProgress(&out, func() float64 { return 0.5 })
	p.Line("1/2")
	p.Line("2/2")
	p.End()
	assert.Equal(t, "1/2\n2/2\n", out.String())
}

func TestBar(t *testing.T) {
	assert.Equal(t, "[##############################..........]  75 %, 0s left", bar(0.75, 0))
	assert.Contains(t, bar(0.75, 30*time.Second), " 75 %, 10s left")
	assert.NotContains(t, bar(0, time.Second), "left")
	assert.Contains(t, bar(7, time.Second), "100 %")
}

// A signal ends the context, and says that it was an interruption.
func TestContext(t *testing.T) {
	ctx, stop := Context()
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	<-ctx.Done()
	assert.ErrorIs(t, context.Cause(ctx), ErrInterrupted)
}
