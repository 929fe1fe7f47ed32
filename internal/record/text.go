package record

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxText bounds the text of an error, in bytes. Submitters and upstreams choose much of some: a
// head that an upstream malforms is quoted whole.
const maxText = 512

// textOf is an error as records and problems have it: at most maxText bytes of printable UTF-8, in
// which anything else is escaped. It is the only way of an error's text to the log, to spans and to
// submitters. nil is "".
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return clean(err.Error())
}

// clean is a text as textOf has that of an error.
func clean(text string) string {
	odd := func(r rune) bool { return r < ' ' || r >= 0x7f }
	if len(text) <= maxText && !strings.ContainsFunc(text, odd) {
		return text
	}
	const more = "..."
	fits := 0
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() <= maxText; {
		if b.Len() <= maxText-len(more) {
			fits = b.Len()
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		one := text[i : i+n]
		if one != `"` && one != `\` {
			one = strings.Trim(strconv.Quote(one), `"`)
		}
		b.WriteString(one)
		i += n
	}
	if b.Len() > maxText {
		return b.String()[:fits] + more
	}
	return b.String()
}
