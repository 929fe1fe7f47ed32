package upstreamclient

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	// maxLines bounds the lines of a head.
	maxLines = 1000
	// lineCost is what a line of a head takes in memory besides its bytes.
	lineCost = 128
	// freeHead is how much of each head is not reserved. Most heads take less.
	freeHead = 4 << 10
)

var (
	errHeadBytes = errors.New("the head of the answer is too long")
	errHeadLines = fmt.Errorf("the head of the answer has more than %d lines", maxLines)
)

// headBound bounds a head while it arrives: lines of a few bytes take far more memory than their bytes.
type headBound struct {
	most     int64  // bytes
	budget   Budget // nil is none
	reserved int64  // in the budget, for the heads of one exchange, of which one at a time is held

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
	switch cost := h.bytes + h.lines*lineCost; {
	case h.bytes > h.most:
		return errHeadBytes
	case h.lines > maxLines:
		return errHeadLines
	case cost > freeHead && cost > h.reserved && h.budget != nil:
		if err := h.budget.Reserve(cost - h.reserved); err != nil {
			return err
		}
		h.reserved = cost
	}
	return nil
}
