package trace

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine bounds a line, in bytes. The rest of a longer line is skipped.
const maxLine = 1 << 20

// lineReader reads the lines of a log, which can be compressed with gzip or bzip2.
type lineReader struct {
	file *os.File
	in   *bufio.Reader
	back [][]byte // lines that next returns again
	line []byte
}

var errLong = fmt.Errorf("is longer than %d MiB", maxLine>>20)

// openLines opens a log.
func openLines(path string) (*lineReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &lineReader{file: file, in: bufio.NewReaderSize(file, 64<<10)}
	start, _ := r.in.Peek(4)
	switch {
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		var unzip io.Reader
		if unzip, err = gzip.NewReader(r.in); err == nil {
			r.in = bufio.NewReaderSize(unzip, 64<<10)
		}
	case bytes.HasPrefix(start, []byte("BZh")):
		r.in = bufio.NewReaderSize(bzip2.NewReader(r.in), 64<<10)
	case bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")):
		err = errors.New("is compressed with zstd: decompress it with zstd -d")
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		err = errors.New("is UTF-16: convert it to UTF-8, as with iconv -f UTF-16 -t UTF-8")
	}
	if err == nil {
		if mark, _ := r.in.Peek(3); string(mark) == "\ufeff" {
			_, err = r.in.Discard(3)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, file.Close()))
	}
	return r, nil
}

// next returns a line without its line break. The line is valid until the next call. After errLong, reading can continue.
func (r *lineReader) next() ([]byte, error) {
	if len(r.back) > 0 {
		line := r.back[0]
		r.back = r.back[1:]
		return line, nil
	}
	r.line = r.line[:0]
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(r.line)+len(part) > maxLine; !long {
			r.line = append(r.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && (!errors.Is(err, io.EOF) || len(r.line) == 0 && !long):
			return nil, err
		case long:
			return r.line, errLong
		default:
			return bytes.TrimRight(r.line, "\r\n"), nil
		}
	}
}
