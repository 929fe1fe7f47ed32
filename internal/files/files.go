// Package files reads what the process is given in files and what may change there:
// certificates, tokens, lists. Every file that is read is bounded, and one that is
// written is replaced whole.
package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxToken bounds a token file, in bytes.
const maxToken = 4 << 10

// Token reads a token, one word of plain ASCII, from a file. It is read for each
// use, because a new token may have the same length and its file the same time.
func Token(path string) (string, error) {
	data, err := Read(path, maxToken)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r < '!' || r > '~' }) {
		return "", fmt.Errorf("%s is not one word of plain ASCII", path)
	}
	return token, nil
}

// Read reads a regular file of at most most bytes.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe would block
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, most)
	}
	return data, nil
}

// Write replaces a file, whole or not at all. Its owner alone may read it.
func Write(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // err already says what failed
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
