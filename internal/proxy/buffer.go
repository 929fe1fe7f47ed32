package proxy

import "sync"

// Sizes of buffers for copying bodies, in bytes. Thousands of responses can wait for their next piece at the same time,
// each with a buffer, so a response with small pieces has a small buffer.
const (
	smallCopy = 4 << 10
	largeCopy = 32 << 10
)

// copyBuffer is a buffer from one of the pools.
type copyBuffer struct{ bytes []byte }

var (
	smallCopies = sync.Pool{New: func() any { return &copyBuffer{make([]byte, smallCopy)} }}
	largeCopies = sync.Pool{New: func() any { return &copyBuffer{make([]byte, largeCopy)} }}
)

// newCopyBuffer returns a buffer for a body of that length, or of an unknown length for -1.
func newCopyBuffer(length int64) *copyBuffer {
	if length > smallCopy {
		return largeCopies.Get().(*copyBuffer)
	}
	return smallCopies.Get().(*copyBuffer)
}

// fit returns the buffer for the next piece, after a piece of n bytes. b can no longer be used.
func (b *copyBuffer) fit(n int) *copyBuffer {
	switch small := len(b.bytes) == smallCopy; {
	case small && n == smallCopy:
		b.release()
		return newCopyBuffer(largeCopy)
	case !small && n < smallCopy:
		b.release()
		return newCopyBuffer(smallCopy)
	}
	return b
}

func (b *copyBuffer) release() {
	if len(b.bytes) == smallCopy {
		smallCopies.Put(b)
	} else {
		largeCopies.Put(b)
	}
}
