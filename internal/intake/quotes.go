package intake

import (
	"encoding/binary"
	"math/bits"
)

// blockSize is how many bytes are looked at together, one bit of a word for each.
const blockSize = 64

// quotes finds the quotation marks around the strings of a JSON text, and checks what is
// within them. It looks at a block at a time. A step for each byte, or for each short
// string, would wait for the step before it.
type quotes struct {
	text    []byte
	base    int             // offset of the block
	end     int             // offset of the next block
	marks   uint64          // of the block, without those that were taken; bit 0 is its first byte
	escaped uint64          // 1: a backslash at the end of the block escapes the first byte of the next
	tail    [blockSize]byte // the last block; zeros follow the text
}

// Where the next mark is: one that begins a string is outside, one that ends it is inString.
const outside, inString = 0, ^uint64(0)

// take returns the offset of the next mark. It returns -1 if there is none, or if a
// string before it is not valid.
func (q *quotes) take(where uint64) int {
	if q.marks == 0 && !q.next(where) {
		return -1
	}
	i := q.base + bits.TrailingZeros64(q.marks)
	q.marks &= q.marks - 1
	return i
}

// next goes to the next block that has marks. It returns false where take returns -1.
func (q *quotes) next(where uint64) bool {
	for q.marks = 0; q.marks == 0; {
		if q.end >= len(q.text) {
			return false
		}
		q.base, q.end = q.end, q.end+blockSize
		block := q.text[q.base:]
		if len(block) < blockSize {
			copy(q.tail[:], block)
			block = q.tail[:]
		}
		b, plain := (*[blockSize]byte)(block), false
		q.marks, plain = look(b)
		if (!plain || q.escaped != 0) && !q.check(b, where) {
			q.marks, q.end = 0, len(q.text) // nothing is found any more
		}
	}
	return true
}

// check takes the escaped marks of a block away. It returns false if a string in it is not valid.
func (q *quotes) check(b *[blockSize]byte, where uint64) bool {
	escaped := q.escaped
	q.escaped = 0
	for left := find(b, '\\', 1) &^ escaped; left != 0; {
		first := left & -left
		rest := q.text[q.base+bits.TrailingZeros64(left)+1:]
		if len(rest) == 0 || !isEscape(rest[0]) || rest[0] == 'u' && !isHex(rest[1:]) {
			return false
		}
		escaped |= first << 1
		left &^= first | first<<1
		q.escaped = first >> (blockSize - 1)
	}
	q.marks &^= escaped
	controls := find(b, 0, ' ')
	return controls == 0 || controls&(within(q.marks)^where) == 0
}

// within returns which bytes have an odd number of marks up to them.
func within(marks uint64) uint64 {
	marks ^= marks << 1
	marks ^= marks << 2
	marks ^= marks << 4
	marks ^= marks << 8
	marks ^= marks << 16
	return marks ^ marks<<32
}

// isEscape reports whether an escape sequence may have c after its backslash. isHex checks the
// digits after a u.
func isEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u':
		return true
	}
	return false
}

// isHex reports whether a text begins with four hexadecimal digits.
func isHex(text []byte) bool {
	for i := range 4 {
		if i == len(text) || !('0' <= text[i] && text[i] <= '9' || 'a' <= text[i]|0x20 && text[i]|0x20 <= 'f') {
			return false
		}
	}
	return true
}

// Eight bytes are one number below. What it says of each byte is in the byte's highest bit.
const (
	ones  = 0x01_01_01_01_01_01_01_01
	lows  = 0x7f * ones
	highs = 0x80 * ones
)

// look returns the quotation marks of a block. plain: it is ASCII without backslashes and
// control characters, as most blocks are.
func look(b *[blockSize]byte) (marks uint64, plain bool) {
	m0, odd0 := lookAt(word(b, 0))
	m1, odd1 := lookAt(word(b, 1))
	m2, odd2 := lookAt(word(b, 2))
	m3, odd3 := lookAt(word(b, 3))
	m4, odd4 := lookAt(word(b, 4))
	m5, odd5 := lookAt(word(b, 5))
	m6, odd6 := lookAt(word(b, 6))
	m7, odd7 := lookAt(word(b, 7))
	odd := odd0 | odd1 | odd2 | odd3 | odd4 | odd5 | odd6 | odd7
	return ^(m0 | m1<<8 | m2<<16 | m3<<24 | m4<<32 | m5<<40 | m6<<48 | m7<<56), odd&highs == 0
}

// lookAt returns which of eight bytes are no quotation marks, and whether one is odd. A
// subtraction borrows from the next byte only where a byte is odd, so that "none is" is exact.
func lookAt(x uint64) (others, odd uint64) {
	return atLeast(x^'"'*ones, 1), x | (x - ' '*ones) | ((x ^ '\\'*ones) - ones)
}

// find returns which bytes of a block are below n after an exclusive or with mask. Where n is 1, these
// are the bytes that equal mask.
func find(b *[blockSize]byte, mask, n uint64) uint64 {
	mask *= ones
	return ^(atLeast(word(b, 0)^mask, n) | atLeast(word(b, 1)^mask, n)<<8 |
		atLeast(word(b, 2)^mask, n)<<16 | atLeast(word(b, 3)^mask, n)<<24 |
		atLeast(word(b, 4)^mask, n)<<32 | atLeast(word(b, 5)^mask, n)<<40 |
		atLeast(word(b, 6)^mask, n)<<48 | atLeast(word(b, 7)^mask, n)<<56)
}

// atLeast returns a bit for each of eight bytes that is n or more. n is from 1 to 0x80.
func atLeast(x, n uint64) uint64 {
	x = x&lows + (0x80-n)*ones | x
	return (x & highs) * 0x0002_0408_1020_4081 >> 56 // moves the highest bits together
}

func word(b *[blockSize]byte, k int) uint64 { return binary.LittleEndian.Uint64(b[8*k : 8*k+8]) }
