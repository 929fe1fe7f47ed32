// Package files reads files that can change while the process runs: certificates,
// tokens and lists. Reads are bounded in size, and writes replace a file atomically.
package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxToken is the maximum size of a token file, in bytes.
const maxToken = 4 << 10

// Token reads a token, one word of printable ASCII, from a file; for the path "" it returns "". Callers
// read it for each use: size and time of the file do not reliably show that the token has changed.
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
		return nil, unreadable(path, err)
	}
	if !info.Mode().IsRegular() { // opening a named pipe would block
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, most)
	}
	return data, nil
}

// unreadable is the error of a file that cannot be read, without the name of a system call.
func unreadable(path string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return fmt.Errorf("%s cannot be read: %w", path, err)
}

// temporary is the suffix of the temporary files of Write.
const temporary = ".pilotfish-tmp"

// abandoned is the age from which a temporary file is assumed to be left by a killed process.
const abandoned = time.Minute

// Write replaces a file atomically. The new file has mode 0600.
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
		_ = os.Remove(f.Name()) // err is the error to report
	}
	return err
}

// removeAbandoned removes old temporary files of a path; now was just created. Errors are ignored, because left-over
// files do no harm.
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
