// Package files reads what the process is given in files and what may change there:
// certificates, tokens, lists. Every file that is read is bounded, and one that is
// written is replaced whole.
package files

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxToken bounds a token file, in bytes.
const maxToken = 4 << 10

// Token reads a token, one word of plain ASCII, from a file; without a path it is "". It is
// read for each use, because a new token may have the same length and its file the same time.
func Token(path string) (string, error) {
	if path == "" {
		return "", nil
	}
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

// temporary ends the name of a file that Write has not put in its place.
const temporary = ".pilotfish-tmp"

// abandoned is the age from which a temporary file is that of a process that was killed.
const abandoned = time.Minute

// Write replaces a file, whole or not at all. Its owner alone may read it.
func Write(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+temporary)
	if err != nil {
		return err
	}
	removeAbandoned(path, f)
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // err already says what failed
	}
	return err
}

// removeAbandoned removes the temporary files of a path that are older than now, which was just created. What cannot be
// removed does no harm.
func removeAbandoned(path string, now *os.File) {
	created, err := now.Stat()
	if err != nil {
		return
	}
	list, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+".") || !strings.HasSuffix(e.Name(), temporary) {
			continue
		}
		if info, err := e.Info(); err == nil && created.ModTime().Sub(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}
