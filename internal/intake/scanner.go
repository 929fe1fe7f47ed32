package intake

import (
	"encoding/binary"
	"math/bits"
)

// jsonText is a JSON text. Each method scans one syntax element: it takes the element's start offset and returns
// its end offset. If the element is invalid or incomplete, it returns an offset beyond the end of the text. The
// methods accept the same texts as a jsontext.Decoder that allows duplicate names and invalid UTF-8, but are
// several times as fast.
type jsonText []byte

// maxDepth is the maximum nesting of arrays and objects, as in jsontext.
const maxDepth = 10_000

// beyond returns the offset that means "invalid".
func (t jsonText) beyond() int { return len(t) + 1 }

// at returns the byte at an offset, or 0 beyond the end.
func (t jsonText) at(i int) byte {
	if uint(i) < uint(len(t)) { // unsigned, so the compiler omits its own bounds check
		return t[i]
	}
	return 0
}

// space returns the end of optional white space.
func (t jsonText) space(i int) int {
	for uint(i) < uint(len(t)) && t[i] <= ' ' && (t[i] == ' ' || t[i] == '\n' || t[i] == '\r' || t[i] == '\t') {
		i++
	}
	return i
}

// value returns the end of a value at the given depth of nesting.
func (t jsonText) value(i, depth int) int {
	switch t.at(i) {
	case '"':
		return t.string(i)
	case '{', '[':
		return t.nested(i, depth)
	case 't':
		return t.literal(i, "true")
	case 'f':
		return t.literal(i, "false")
	case 'n':
		return t.literal(i, "null")
	}
	return t.number(i)
}

// levels is the number of levels of nesting that one call of nested scans: one bit each.
const levels = 64

// nested returns the end of an array or object.
func (t jsonText) nested(i, depth int) int {
	var objects uint64 // whether each open level is an object; the innermost is the lowest bit
	for open := 0; ; {
		switch c := t.at(i); {
		case c == '"':
			i = t.string(i)
		case c != '{' && c != '[':
			i = t.value(i, depth)
		case depth+open >= maxDepth:
			return t.beyond()
		case open == levels:
			i = t.nested(i, depth+open)
		default:
			open, objects = open+1, objects<<1|uint64(c>>5&1) // bit 5 is set in '{', not in '['
			if i = t.space(i + 1); t.at(i) != c+2 {
				if c == '{' {
					i = t.name(i)
				}
				continue
			}
		}
		for { // after a value
			i = t.space(i)
			if t.at(i) == ',' {
				if i = t.space(i + 1); objects&1 != 0 {
					i = t.name(i)
				}
				break
			}
			if t.at(i) != ']'+byte(objects&1)<<5 {
				return t.beyond()
			}
			objects >>= 1
			i++
			if open--; open == 0 {
				return i
			}
		}
	}
}

// name returns the end of a member's name and of the colon after it.
func (t jsonText) name(i int) int {
	if i = t.space(t.string(i)); t.at(i) != ':' {
		return t.beyond()
	}
	return t.space(i + 1)
}

// string tests eight bytes at once, as one number. The highest bit of each byte is the result for that byte.
const (
	ones  = 0x01_01_01_01_01_01_01_01
	highs = 0x80 * ones
)

// string returns the end of a string.
func (t jsonText) string(i int) int {
	if t.at(i) != '"' {
		return t.beyond()
	}
	for i++; i < len(t); i++ {
		if i+8 <= len(t) {
			x := binary.LittleEndian.Uint64(t[i : i+8])
			// Find quotation marks, backslashes and control characters. Only such a byte borrows from the byte
			// after it, so a wrong bit is possible only after the first match, which is all that is used.
			odd := (((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones) | (x - ' '*ones)) & (highs &^ x)
			if odd == 0 {
				i += 7
				continue
			}
			i += bits.TrailingZeros64(odd) >> 3
		}
		switch c := t[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return t.beyond()
		case c == '\\':
			i++
			switch t.at(i) {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; !isHex(t.at(i)) {
						return t.beyond()
					}
				}
			default:
				return t.beyond()
			}
		}
	}
	return t.beyond()
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

// literal returns the end of the literal word, such as true.
func (t jsonText) literal(i int, word string) int {
	end := i + len(word)
	if end > len(t) || string(t[i:end]) != word {
		return t.beyond()
	}
	return end
}

// number returns the end of a number.
func (t jsonText) number(i int) int {
	if t.at(i) == '-' {
		i++
	}
	if t.at(i) == '0' {
		i++
	} else {
		i = t.digits(i)
	}
	if t.at(i) == '.' {
		i = t.digits(i + 1)
	}
	if t.at(i)|0x20 == 'e' {
		if i++; t.at(i) == '+' || t.at(i) == '-' {
			i++
		}
		i = t.digits(i)
	}
	return i
}

// digits returns the end of one or more digits.
func (t jsonText) digits(i int) int {
	begin := i
	for '0' <= t.at(i) && t.at(i) <= '9' {
		i++
	}
	if i == begin {
		return t.beyond()
	}
	return i
}
