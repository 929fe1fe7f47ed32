package upstreamclient

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	// maxLines bounds the lines of a head.
	maxLines = 1000
	// LineCost is what a line of a head takes in memory besides its bytes.
	LineCost = 128
)

var (
	errHeadBytes = errors.New("the head of the answer is too long")
	errHeadLines = fmt.Errorf("the head of the answer has more than %d lines", maxLines)
)

// headBound bounds a head while it arrives: lines of a few bytes take far more memory than their bytes.
type headBound struct {
	most         int64 // bytes
	ended        bool
	bytes, lines int64
	line         int // bytes of the line that has begun
}

// begin begins a head.
func (h *headBound) begin() { h.ended, h.bytes, h.lines, h.line = false, 0, 0, 0 }

// count counts what was received next. What follows the head does not count.
func (h *headBound) count(p []byte) error {
	for !h.ended && len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			h.bytes += int64(len(p))
			h.line += len(p)
			break
		}
		h.ended = h.line+end == 1 || h.line+end == 2 && (h.line == 1 || p[0] == '\r')
		h.bytes += int64(end)
		h.lines++
		h.line = 0
		p = p[end:]
	}
	switch {
	case h.bytes > h.most:
		return errHeadBytes
	case h.lines > maxLines:
		return errHeadLines
	}
	return nil
}
