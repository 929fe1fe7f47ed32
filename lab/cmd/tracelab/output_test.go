package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, writeFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "text", string(text))

	fault := errors.New("no words")
	err = writeFile(path, func(io.Writer) error { return fault })
	assert.ErrorIs(t, err, fault)
	assert.EqualError(t, err, path+": no words")
	assert.ErrorIs(t, writeFile(filepath.Join(path, "f"), nil), syscall.ENOTDIR)
}

func TestCheckDirectory(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, checkDirectory(dir))
	assert.ErrorIs(t, checkDirectory(filepath.Join(dir, "absent")), os.ErrNotExist)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.EqualError(t, checkDirectory(file), file+" is not a directory")
}
