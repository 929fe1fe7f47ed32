package intake

import (
	"errors"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// errNotScanned: the scanner could not read the body. The decoder may.
var errNotScanned = errors.New("not valid, or nested too deeply")

// scanner reads the members of an object as a jsontext.Decoder does, but faster. The decoder
// accepts all that the scanner accepts, and reads the same. The scanner refuses what is not valid
// without a reason, and also what is nested too deeply for it. The decoder must read that anew.
type scanner struct {
	quotes
	read  int  // end of what was read
	token int  // offset of the next token; the end of the text if there is none
	after byte // stands before the next token: a colon, a comma, or 0 for nothing
	depth int  // objects that were begun and not ended
}

// maxOpen is how deep a value that is skipped may be nested: a bit for each level.
const maxOpen = 62

func (s *scanner) reset(text []byte) {
	*s = scanner{quotes: quotes{text: text}}
	s.goOn(0, 0)
}

// PeekKind returns the kind of the next token, or KindInvalid.
func (s *scanner) PeekKind() jsontext.Kind { return jsontext.Value(s.text[s.token:]).Kind() }

// InputOffset returns the end of the last token or value.
func (s *scanner) InputOffset() int64 { return int64(s.read) }

// ReadToken reads the beginning or the end of an object.
func (s *scanner) ReadToken() (jsontext.Token, error) {
	switch c := s.byte(s.token); {
	case c == '{' && (s.after == ':' || s.depth == 0):
		s.depth++
		s.goOn(s.token+1, 0)
	case c == '}' && s.depth > 0:
		s.depth--
		s.goOn(s.token+1, ',')
	default:
		return jsontext.Token{}, errNotScanned
	}
	return jsontext.Token{}, nil
}

// ReadValue reads a name, or the value after one.
func (s *scanner) ReadValue() (jsontext.Value, error) {
	begin, after := s.token, byte(',')
	if s.after != ':' {
		if after = ':'; s.byte(begin) != '"' {
			return nil, errNotScanned
		}
	}
	end, ok := s.value(begin)
	if !ok {
		return nil, errNotScanned
	}
	s.goOn(end, after)
	return s.text[begin:end], nil
}

// goOn goes to the next token. What was read ends at end.
func (s *scanner) goOn(end int, after byte) {
	s.read, s.after = end, after
	i := skipSpace(s.text, end)
	if after != 0 && (after != ',' || s.byte(i) != '}') {
		c := s.byte(i)
		if i = skipSpace(s.text, i+1); c != after || s.byte(i) == '}' {
			i = len(s.text)
		}
	}
	s.token = i
}

// ended reports whether nothing follows.
func (s *scanner) ended() bool { return skipSpace(s.text, s.read) == len(s.text) }

// byte returns the byte at an offset, 0 after the end.
func (s *scanner) byte(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// skipSpace returns the end of the white space that begins at i.
func skipSpace(text []byte, i int) int {
	for i < len(text) && text[i] <= ' ' && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// value returns the end of the value that begins at i.
func (s *scanner) value(i int) (end int, ok bool) {
	switch s.byte(i) {
	case '"':
		_, end = s.take(outside), s.take(inString)+1
		return end, end > 0
	case '{', '[':
		return s.skip(i)
	}
	return s.scalar(i)
}

// skip returns the end of the array or object that begins at i.
func (s *scanner) skip(i int) (end int, ok bool) {
	const colonOrComma = ':' ^ ','
	text := s.text
	open := uint64(1)   // a bit for each level, 1 for an object; above them a 1
	var want, turn byte // what follows this name or value; want^turn follows the next one
	for {
		if i = skipSpace(text, i); i >= len(text) {
			return 0, false
		}
		switch c := text[i]; {
		case c == '"':
			if i, want, ok = s.strings(want, turn); !ok {
				return 0, false
			}
		case want == ':': // a name is a string
			return 0, false
		case c == '{', c == '[':
			if open>>maxOpen != 0 {
				return 0, false
			}
			open, want, turn = open<<1, ',', 0
			if c == '{' {
				open, want, turn = open|1, ':', colonOrComma
			}
			if i = skipSpace(text, i+1); s.byte(i) != c+2 { // not its end
				continue
			}
			want = ','
		default:
			if i, ok = s.scalar(i); !ok {
				return 0, false
			}
		}
		for { // after a value, which may be the last in its array or object
			if i = skipSpace(text, i); i >= len(text) {
				return 0, false
			}
			c := text[i]
			i++
			if c == want {
				want ^= turn
				break
			}
			if want != ',' || c != ']'+byte(open&1)*('}'-']') {
				return 0, false
			}
			if open >>= 1; open == 1 {
				return i, true
			}
			want, turn = ',', byte(open&1)*colonOrComma
		}
	}
}

// strings returns the end of the string to come, and what follows it. If a colon or comma
// and another string follow, it goes on to that one: most strings come in such rows.
func (s *scanner) strings(want, turn byte) (i int, follows byte, ok bool) {
	text, marks := s.text, s.marks
	for {
		if marks == 0 {
			if !s.next(outside) {
				return 0, 0, false
			}
			marks = s.marks
		}
		if marks &= marks - 1; marks == 0 { // without the one that begins it
			if !s.next(inString) {
				return 0, 0, false
			}
			marks = s.marks
		}
		i = s.base + bits.TrailingZeros64(marks) + 1
		marks &= marks - 1
		if i+1 >= len(text) || text[i] != want {
			break
		}
		if text[i+1] != '"' {
			if j := skipSpace(text, i+1); j >= len(text) || text[j] != '"' {
				break
			}
		}
		want ^= turn
	}
	s.marks = marks
	return i, want, true
}

// scalar returns the end of the number or literal that begins at i.
func (s *scanner) scalar(i int) (end int, ok bool) {
	if rest := s.text[i:]; len(rest) >= 4 {
		switch string(rest[:4]) {
		case "true", "null":
			return i + 4, true
		case "fals":
			return i + 5, s.byte(i+4) == 'e'
		}
	}
	return endOfNumber(s.text, i)
}

// endOfNumber returns the end of the number that begins at i.
func endOfNumber(text []byte, i int) (end int, ok bool) {
	if i < len(text) && text[i] == '-' {
		i++
	}
	begin := i
	i = digits(text, i)
	ok = i == begin+1 || i > begin && text[begin] != '0'
	if i < len(text) && text[i] == '.' {
		begin = i + 1
		i = digits(text, begin)
		ok = ok && i > begin
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		begin = i
		i = digits(text, begin)
		ok = ok && i > begin
	}
	return i, ok
}

// digits returns the end of the digits that begin at i.
func digits(text []byte, i int) int {
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return i
}
