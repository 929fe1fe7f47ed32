package report

import (
	"bytes"
	"fmt"
	"io"
)

// lines passes on what it reads while it has no more than max line ends.
type lines struct {
	from      io.Reader
	left, max int
}

func (l *lines) Read(into []byte) (int, error) {
	n, err := l.from.Read(into)
	if l.left -= bytes.Count(into[:n], []byte{'\n'}); l.left < 0 {
		return 0, fmt.Errorf("longer than %d lines", l.max)
	}
	return n, err
}
