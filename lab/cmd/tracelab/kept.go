package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/sources"
)

// kept has the flags of a command whose result is stored in the repository.
type kept struct {
	Root   string `type:"path" placeholder:"DIR" help:"The repository. The result states the hash of its sources and of the command's input."`
	Result string `type:"path" placeholder:"FILE" help:"With --root: write the result to this file, unless it already has the same hash."`
}

// keep writes a result, which states the hash of its sources if a root is given. file is the command's input; it can be
// empty.
func (k *kept) keep(console cli.Console, file string, paths []string, play func(io.Writer) error) error {
	if k.Root == "" {
		return play(console.Out)
	}
	stated, err := stated(k.Root, file, paths)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(k.Result); err == nil && strings.HasPrefix(string(old), stated) {
		fmt.Fprintf(console.Err, "%s is up to date\n", k.Result)
		return nil
	}
	out := bytes.NewBufferString(stated)
	if err := play(out); err != nil {
		return err
	}
	if k.Result == "" {
		_, err = console.Out.Write(out.Bytes())
		return err
	}
	return os.WriteFile(k.Result, out.Bytes(), 0o644)
}

// stated returns the first lines of a result.
func stated(root, file string, paths []string) (string, error) {
	if file != "" {
		below, err := filepath.Rel(root, file)
		if err != nil {
			return "", err
		}
		paths = append(paths, filepath.ToSlash(below))
	}
	hash, err := sources.Hash(root, paths...)
	return fmt.Sprintf("sources: %s\n\n", hash), err
}
