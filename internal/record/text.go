package record

import (
	"strconv"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// maxText is the maximum length of an error text, in bytes. Without it, submitters and upstreams could fill logs: some
// errors quote a whole invalid header.
const maxText = settings.MaxText

// textOf returns the text of an error for records and problems: at most maxText bytes of printable
// ASCII; other characters are escaped. All error texts in logs, spans and responses pass through it.
// The text of nil is "".
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return clean(err.Error())
}

// clean escapes and shortens a text as textOf does.
func clean(text string) string {
	odd := func(r rune) bool { return r < ' ' || r >= 0x7f }
	if len(text) <= maxText && !strings.ContainsFunc(text, odd) {
		return text
	}
	quoted := strconv.Quote(text[:min(len(text), maxText+1)])
	return settings.Cut(unescaped.Replace(quoted[1:len(quoted)-1]), maxText)
}

// unescaped reverts the escapes of backslashes and quotation marks.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
