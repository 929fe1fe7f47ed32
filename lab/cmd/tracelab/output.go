package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// writeFile creates a file, or replaces one, with what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	if err := write(out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// checkDirectory refuses what is not a directory. A long command calls it for
// the places of its outputs, so that it fails before its work rather than after.
func checkDirectory(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return err
}
