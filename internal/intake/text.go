package intake

// inline is how many bytes a Text holds in place: enough for a UUID and for any
// 64-bit integer.
const inline = 39

// Text is a short string that usually needs no allocation: integers and UUIDs
// are held in place. Texts are equal under == exactly if their strings are.
type Text struct {
	long  string // set only when the text does not fit in place
	n     uint8
	short [inline]byte
}

// NewText returns the text of s.
func NewText(s string) Text { return makeText(s) }

func makeText[T string | []byte](s T) Text {
	var t Text
	if len(s) > inline {
		t.long = string(s)
		return t
	}
	t.n = uint8(copy(t.short[:], s))
	return t
}

// Len returns the length in bytes; 0 means that there is no text.
func (t Text) Len() int { return len(t.long) + int(t.n) }

// String returns the text, for which a short one is copied.
func (t Text) String() string {
	if t.long != "" {
		return t.long
	}
	return string(t.short[:t.n])
}

// MarshalText makes encoders write a Text as the string it stands for.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
