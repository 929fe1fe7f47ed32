package intake

import (
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// odd is the result of a scan that met something that it leaves to the walk:
// whatever is no valid job, and a few things that are rare.
const odd = -1

// quick reads the facts of an ordinary job several times as fast as the walk
// does. It reports false, and nothing else, where it meets something odd: the walk
// then reads the body from its beginning, and says what is wrong with it, if
// anything is. So quick may refuse what it likes, but accepts only what the walk
// accepts, with the same facts.
func (w *walk) quick(root *node) bool {
	w.left = root.leaves
	at := skipSpace(w.body, 0)
	if at == len(w.body) || w.body[at] != '{' {
		return false
	}
	end, closed := w.quickObject(root, at+1)
	return end != odd && (!closed || skipSpace(w.body, end) == len(w.body))
}

// quickObject reads the object that n stands for, from behind its brace. It
// returns where it stopped: behind the object, or, not closed, where no wanted
// member was left.
func (w *walk) quickObject(n *node, at int) (end int, closed bool) {
	after := w.left - n.leaves
	at = skipSpace(w.body, at)
	if at < len(w.body) && w.body[at] == '}' {
		w.left = after
		return at + 1, true
	}
	for {
		start := at
		if at = skipString(w.body, at); at == odd {
			return odd, false
		}
		c := w.child(n, w.body[start:at])
		if at = skipColon(w.body, at); at == odd {
			return odd, false
		}
		switch {
		case c == nil:
			at = skipValue(w.body, at)
		case w.seen&c.bit != 0:
			return odd, false // it is there twice
		default:
			w.seen |= c.bit
			at = w.quickMember(c, at)
		}
		if at == odd || w.left == 0 {
			return at, false
		}
		at = skipSpace(w.body, at)
		switch {
		case at < len(w.body) && w.body[at] == ',':
			at = skipSpace(w.body, at+1)
		case at < len(w.body) && w.body[at] == '}':
			w.left = after
			return at + 1, true
		default:
			return odd, false
		}
	}
}

// quickMember reads the value of c: a wanted member, or an object on the way to some.
func (w *walk) quickMember(c *node, at int) (end int) {
	if c.want == none && at < len(w.body) && w.body[at] == '{' {
		end, _ = w.quickObject(c, at+1)
		return end
	}
	if end = skipValue(w.body, at); end == odd {
		return odd
	}
	value := w.body[at:end]
	kind := jsontext.Kind(value[0])
	if kind == '-' || '0' <= kind && kind <= '9' {
		kind = '0'
	}
	w.left -= c.leaves
	w.meet(c.want)
	if kind != 'n' && w.set(c.want, c.part, kind, value) != "" {
		return odd
	}
	return end
}

// The skip functions return the index behind what they skip, or odd.

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipColon skips the colon behind a name, and the space around it.
func skipColon(b []byte, i int) int {
	if i = skipSpace(b, i); i == len(b) || b[i] != ':' {
		return odd
	}
	return skipSpace(b, i+1)
}

// maxQuick is how many levels of nesting a value may have here.
const maxQuick = 60

// skipValue skips a value that begins at i, with all that is in it.
func skipValue(b []byte, i int) int {
	objects := uint64(1) // a bit for each open level, the innermost last: is it an object? The first bit is a mark.
	for {
		if i >= len(b) {
			return odd
		}
		switch c := b[i]; c {
		case '{', '[':
			inner := skipSpace(b, i+1)
			if inner < len(b) && b[inner] == c+2 { // both closing brackets are two behind the opening ones
				i = inner + 1
				break
			}
			if objects >= 1<<maxQuick {
				return odd
			}
			objects <<= 1
			if c == '{' {
				objects |= 1
				inner = skipName(b, inner)
			}
			if i = inner; i == odd {
				return odd
			}
			continue
		case '"':
			i = skipString(b, i)
		case 't':
			i = skipWord(b, i, "true")
		case 'f':
			i = skipWord(b, i, "false")
		case 'n':
			i = skipWord(b, i, "null")
		default:
			i = skipNumber(b, i)
		}
		if i, objects = skipEnds(b, i, objects); i == odd || objects == 1 {
			return i
		}
	}
}

// skipEnds skips what follows a value: the ends of the open levels, until there is
// no level left or another value begins.
func skipEnds(b []byte, i int, objects uint64) (next int, left uint64) {
	for i != odd && objects > 1 {
		if i = skipSpace(b, i); i == len(b) {
			return odd, objects
		}
		c := b[i]
		i++
		inObject := objects&1 == 1
		switch {
		case c == ',' && inObject:
			return skipName(b, skipSpace(b, i)), objects
		case c == ',':
			return skipSpace(b, i), objects
		case c == '}' && inObject, c == ']' && !inObject:
			objects >>= 1
		default:
			return odd, objects
		}
	}
	return i, objects
}

// skipName skips a member's name and the colon behind it.
func skipName(b []byte, i int) int {
	if i = skipString(b, i); i == odd {
		return odd
	}
	return skipColon(b, i)
}

func skipWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return odd
	}
	return i + len(word)
}

func skipNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	start := i
	i = skipDigits(b, i)
	if i == start || b[start] == '0' && i > start+1 {
		return odd
	}
	if i < len(b) && b[i] == '.' {
		start = i + 1
		if i = skipDigits(b, start); i == start {
			return odd
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start = i
		if i = skipDigits(b, start); i == start {
			return odd
		}
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// skipString skips a quoted string. Its bytes need not be UTF-8.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return odd
	}
	i++
	for i < len(b) {
		if i+8 <= len(b) {
			stops := special(binary.LittleEndian.Uint64(b[i:]))
			if stops == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(stops) / 8
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = skipEscape(b, i); i == odd {
				return odd
			}
		case c < ' ':
			return odd
		default:
			i++
		}
	}
	return odd
}

// special marks, in the highest bit of the first byte where it is so, that this
// byte of eight is a quote, a backslash or a control character. Marks behind the
// first may be wrong.
func special(eight uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := eight^ones*'"', eight^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (eight-ones*' ')&^eight) & high
}

func skipEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return odd
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return odd
		}
		for _, c := range b[i+2 : i+6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return odd
			}
		}
		return i + 6
	}
	return odd
}
