package intake

import (
	"encoding/binary"
	"math/bits"
)

// jsonText is a JSON text. Its methods take the offset of what they read and return that of its end. Where it
// is not valid, or not all there, they return an offset beyond the end of the text: nothing is valid there.
// They accept what a jsontext.Decoder accepts that allows duplicate names and invalid UTF-8, in a fraction of
// its time.
type jsonText []byte

// maxDepth bounds how deep arrays and objects may be nested, as in jsontext.
const maxDepth = 10_000

// beyond is the offset that stands for what is not valid.
func (t jsonText) beyond() int { return len(t) + 1 }

// at returns the byte at an offset, 0 after the end.
func (t jsonText) at(i int) byte {
	if uint(i) < uint(len(t)) { // as unsigned numbers, so that the compiler checks no bounds again
		return t[i]
	}
	return 0
}

// space returns the end of white space, which may be empty.
func (t jsonText) space(i int) int {
	for uint(i) < uint(len(t)) && t[i] <= ' ' && (t[i] == ' ' || t[i] == '\n' || t[i] == '\r' || t[i] == '\t') {
		i++
	}
	return i
}

// value returns the end of a value within so many arrays and objects.
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

// nested returns the end of an array or object.
func (t jsonText) nested(i, depth int) int {
	object, end := t[i] == '{', t[i]+('}'-'{')
	if depth >= maxDepth {
		return t.beyond()
	}
	if i = t.space(i + 1); t.at(i) == end {
		return i + 1
	}
	for {
		if object {
			if i = t.space(t.string(i)); t.at(i) != ':' {
				return t.beyond()
			}
			i = t.space(i + 1)
		}
		if t.at(i) == '"' { // as most values are: without a call more
			i = t.string(i)
		} else {
			i = t.value(i, depth+1)
		}
		i = t.space(i)
		switch t.at(i) {
		case ',':
			i = t.space(i + 1)
		case end:
			return i + 1
		default:
			return t.beyond()
		}
	}
}

// Eight bytes are one number in string. What it says of each byte is in the byte's highest bit.
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
			// A subtraction borrows from the byte after a quotation mark, a backslash or a control character
			// only, so that the first of them is found for certain.
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

// literal returns the end of a word.
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

// digits returns the end of digits, of which there must be one.
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
