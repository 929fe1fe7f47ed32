package record

import (
	"strconv"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// maxText bounds the text of an error, in bytes. Submitters and upstreams choose much of some: an invalid head is quoted
// whole.
const maxText = settings.MaxText

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
	quoted := strconv.Quote(text[:min(len(text), maxText+1)])
	return settings.Cut(unescaped.Replace(quoted[1:len(quoted)-1]), maxText)
}

// unescaped undoes the escapes of what is printable.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
