package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

var (
	errChunk    = errors.New("malformed chunked encoding")
	errOverhead = errors.New("chunked encoding with too long extensions")
)

// Bounds of the bytes of a chunked body that are not data.
const (
	maxChunkLine = 4 << 10 // the line with a chunk's size and extensions
	freeOverhead = 256     // free bytes per chunk line, plus twice the chunk's data
	maxOverhead  = 16 << 10
)

// Chunks reads a chunked body. A Read returns the bytes of a chunk that have been received, without waiting for the rest.
type Chunks struct {
	In *bufio.Reader
	// MaxTrailer bounds the trailer section, in bytes.
	MaxTrailer int
	// Trailer is the trailer section. It is set when Read has returned io.EOF.
	Trailer http.Header

	left     uint64 // unread bytes of the chunk
	begun    bool   // a chunk has started, and the line end after it was not read
	last     bool   // the last chunk was read
	overhead int64
	err      error
}

func (c *Chunks) Read(p []byte) (n int, err error) {
	for c.err == nil && len(p) > 0 {
		if c.left > 0 {
			if n > 0 && c.In.Buffered() == 0 {
				return n, nil
			}
			got, err := c.In.Read(p[:min(uint64(len(p)), c.left)])
			n, p, c.left, c.err = n+got, p[got:], c.left-uint64(got), truncationError(err)
			continue
		}
		switch {
		case n > 0 && !c.lineBuffered():
			return n, nil
		case c.last:
			c.err = c.end()
		default:
			c.err = c.next()
		}
	}
	if n > 0 && c.err != io.EOF { //nolint:errorlint // it is this package's own
		return n, nil
	}
	return n, c.err
}

// lineBuffered reports whether the end of the chunk and the next chunk line, or the end of the body, can be read
// without waiting.
func (c *Chunks) lineBuffered() bool {
	there, _ := c.In.Peek(c.In.Buffered())
	switch {
	case c.last:
		return bytes.HasPrefix(there, []byte("\r\n"))
	case c.begun:
		there = there[min(2, len(there)):]
	}
	return bytes.IndexByte(there, '\n') >= 0
}

// Ready reports whether the first Read returns without waiting.
func (c *Chunks) Ready() bool {
	there, _ := c.In.Peek(c.In.Buffered())
	line, after, found := bytes.Cut(there, []byte("\n"))
	return found && len(after) > 0 && (!bytes.HasPrefix(line, []byte("0")) || bytes.HasSuffix(after, []byte("\r\n")))
}

// next reads the end of a chunk and the next chunk line.
func (c *Chunks) next() error {
	if c.begun {
		var end [2]byte
		if _, err := io.ReadFull(c.In, end[:]); err != nil {
			return truncationError(err)
		}
		if string(end[:]) != "\r\n" {
			return errChunk
		}
		c.begun = false
	}
	line, err := c.In.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || len(line) > maxChunkLine:
		return errOverhead
	case err != nil:
		return truncationError(err)
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || bytes.IndexByte(line, '\r') >= 0 {
		return errChunk
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	if c.left, ok = hex(bytes.TrimRight(size, " \t")); !ok {
		return errChunk
	}
	if c.overhead = max(0, c.overhead+int64(len(line))-freeOverhead-2*int64(min(c.left, maxOverhead))); c.overhead > maxOverhead {
		return errOverhead
	}
	c.begun = c.left > 0
	c.last = !c.begun
	return nil
}

// end reads the trailer section.
func (c *Chunks) end() error {
	var text strings.Builder
	for {
		line, err := c.In.ReadSlice('\n')
		begins := text.Len() == 0 || strings.HasSuffix(text.String(), "\n")
		switch {
		case text.Len()+len(line) > c.MaxTrailer:
			return errors.New("the trailer section is too long")
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return truncationError(err)
		case begins && string(line) == "\r\n":
			return c.setTrailer(text.String())
		}
		text.Write(line)
		if err == nil && !strings.HasSuffix(text.String(), "\r\n") { // parsers disagree on where such a line ends
			return errChunk
		}
	}
}

// setTrailer parses the trailer section. The error is io.EOF if it is valid.
func (c *Chunks) setTrailer(text string) error {
	if text == "" {
		return io.EOF
	}
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(text + "\r\n"))).ReadMIMEHeader()
	if err != nil {
		return truncationError(err)
	}
	c.Trailer = http.Header(h)
	return io.EOF
}

// hex parses the size of a chunk.
func hex(text []byte) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(text), 16, 64)
	return n, err == nil && len(text) <= 16
}

// truncationError returns the error of a read within a message: there, io.EOF is unexpected.
func truncationError(err error) error {
	if err == io.EOF { //nolint:errorlint // a reader's own end
		return io.ErrUnexpectedEOF
	}
	return err
}
