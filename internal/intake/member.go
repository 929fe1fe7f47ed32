package intake

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

const (
	maxWord   = 32 // bytes of an unknown priority that an error repeats
	maxDigits = 64 // bytes of a number of seconds
)

// set keeps the value of m, or of that part of it, which is not null. It returns
// what is wrong with the value, or "".
func (w *walk) set(m member, part int, kind jsontext.Kind, value []byte) (wrong string) {
	switch m {
	case project:
		return w.setProject(part, kind, value)
	case priority:
		return w.setPriority(kind, value)
	case session:
		return w.setSession(kind, value)
	case queue:
		w.facts.Queue, wrong = seconds(kind, value)
	case evaluate:
		w.facts.Evaluate, wrong = seconds(kind, value)
	case stream:
		w.facts.Stream, wrong = seconds(kind, value)
	case dataBytes:
		w.facts.Bytes, wrong = sizeOf(kind, value)
	default:
		wrong = "must be an object, not " + kindName(kind)
	}
	return wrong
}

func (w *walk) setProject(part int, kind jsontext.Kind, value []byte) (wrong string) {
	const must = "must be an integer or a string"
	var text []byte
	n := w.project[part].Prefix
	if n > 0 {
		text = prefix(kind, value, n)
	} else {
		text, wrong = w.identifier(kind, value, MaxProject, must)
	}
	switch {
	case n > 0:
	case wrong != "":
		return wrong
	case kind == '0' && bytes.ContainsAny(value, ".eE"):
		return must + ", not " + string(value)
	case string(value) == "-0":
		text = value[1:] // the same integer
	}
	if len(w.project) == 1 {
		w.facts.Project, w.facts.Key = makeText(text), hash.Project(text)
	} else {
		w.parts[part] = makeText(text)
	}
	return ""
}

// prefix is the project of the jobs whose value begins alike.
func prefix(kind jsontext.Kind, value []byte, n int) []byte {
	if kind == '"' {
		value = value[1 : len(value)-1]
	}
	if len(value) == 0 {
		return nil
	}
	return fmt.Appendf(nil, "%016x", hash.Project(value[:min(n, len(value))]))
}

func (w *walk) setSession(kind jsontext.Kind, value []byte) (wrong string) {
	text, wrong := w.identifier(kind, value, maxSession, "must be a string or a number")
	if wrong == "" {
		w.facts.Session = makeText(text)
	}
	return wrong
}

// identifier returns the text of a string or of a number, up to limit bytes.
func (w *walk) identifier(kind jsontext.Kind, value []byte, limit int, must string) (text []byte, wrong string) {
	switch kind {
	case '"':
		text, ok := w.unquote(value, limit)
		if !ok {
			return nil, fmt.Sprintf("is longer than %d bytes", limit)
		}
		return text, ""
	case '0':
		if len(value) > limit {
			return nil, fmt.Sprintf("is longer than %d digits", limit)
		}
		return value, ""
	}
	return nil, must + ", not " + kindName(kind)
}

func (w *walk) setPriority(kind jsontext.Kind, value []byte) (wrong string) {
	const must = `must be "high" or "low"`
	if kind != '"' {
		return must + ", not " + kindName(kind)
	}
	word, ok := w.unquote(value, maxWord)
	if !ok {
		return must
	}
	if w.facts.Priority, ok = selection.ParsePriority(string(word)); !ok {
		return fmt.Sprintf("%s, not %+q", must, word)
	}
	return ""
}

// seconds reads a timeout, to the nanosecond. A timeout above 0 stays above 0.
func seconds(kind jsontext.Kind, value []byte) (d time.Duration, wrong string) {
	if kind != '0' {
		return 0, "must be a number of seconds, not " + kindName(kind)
	}
	if len(value) > maxDigits {
		return 0, fmt.Sprintf("is longer than %d digits", maxDigits)
	}
	s, err := strconv.ParseFloat(string(value), 64)
	switch {
	case s < 0:
		return 0, "must not be negative"
	case err != nil || s > MaxTimeout.Seconds():
		return 0, fmt.Sprintf("must be at most %.0f seconds", MaxTimeout.Seconds())
	}
	d = time.Duration(math.Round(s * float64(time.Second)))
	if s > 0 && d == 0 {
		d = 1
	}
	return d, ""
}

// maxData bounds the size of a project's data, in bytes.
const maxData = 1e15

// sizeOf reads the size of a project's data.
func sizeOf(kind jsontext.Kind, value []byte) (bytes float64, wrong string) {
	if kind != '0' {
		return 0, "must be a number of bytes, not " + kindName(kind)
	}
	if len(value) > maxDigits {
		return 0, fmt.Sprintf("is longer than %d digits", maxDigits)
	}
	bytes, err := strconv.ParseFloat(string(value), 64)
	switch {
	case bytes < 0:
		return 0, "must not be negative"
	case err != nil || bytes > maxData:
		return 0, fmt.Sprintf("must be at most %.0f bytes", maxData)
	}
	return bytes, ""
}

// unquote returns the text of a quoted string, valid until the next call; ok
// is false when it is longer than limit. Invalid UTF-8 becomes U+FFFD.
func (w *walk) unquote(quoted []byte, limit int) (text []byte, ok bool) {
	const longest = len(`\u0000`) // of what one byte may be written as
	if len(quoted) > longest*limit+len(`""`) {
		return nil, false
	}
	text = quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		// The decoder has accepted the string, so that only its UTF-8 can be wrong.
		w.scratch, _ = jsontext.AppendUnquote(w.scratch[:0], quoted)
		text = w.scratch
	}
	return text, len(text) <= limit
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	}
	return "an array"
}
