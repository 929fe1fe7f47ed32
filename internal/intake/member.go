package intake

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/pkg/selection"
)

const (
	maxWord   = 32 // maximum length of a priority; an error does not quote a longer one
	maxDigits = 64 // maximum length of a number, in bytes
)

// set stores the value of m in the facts; part is the index among several places of the
// member. The value is not null. set returns what is wrong with the value, or "".
func (w *walk) set(m member, part int, kind jsontext.Kind, value []byte) (wrong string) {
	switch m {
	case project:
		return w.setProject(part, kind, value)
	case lengthKey:
		if text := plain(kind, value); len(text) > 0 {
			w.lengths[part] = lengthPart(text)
		}
	case priority:
		return w.setPriority(kind, value)
	case session:
		text, _ := w.identifier(kind, value, maxSession, "")
		w.facts.Session = string(text) // only logged: an invalid session must not reject the job
	case queue:
		w.facts.Queue, wrong = seconds(kind, value)
	case firstByte:
		w.facts.Evaluate, wrong = seconds(kind, value)
	case stream:
		w.facts.Stream, wrong = seconds(kind, value)
	case dataBytes:
		w.facts.Bytes, wrong = number(kind, value, maxData, "bytes")
	case prefetch:
		w.facts.Prefetch = kind == 't' || kind == '"' && string(value) == `"true"`
		if no := kind == 'f' || kind == '"' && string(value) == `"false"`; !no && !w.facts.Prefetch {
			wrong = "must be true or false"
		}
	default:
		wrong = "must be an object, not " + kindName(kind)
	}
	return wrong
}

func (w *walk) setProject(part int, kind jsontext.Kind, value []byte) (wrong string) {
	switch size := int(w.project[part].Blocks); {
	case size > 0:
		first := len(w.chain) == 0
		if w.chain = blocks(w.chain, plain(kind, value), size); first && len(w.chain) > 0 {
			w.names[part] = fmt.Sprintf("%016x", w.chain[0].Key)
		}
	case kind == '[':
		return w.setSeveral(value)
	default:
		text, wrong := w.name(kind, value)
		w.names[part] = string(text)
		return wrong
	}
	return ""
}

// plain returns the text of a value, for a string without the quotation marks.
func plain(kind jsontext.Kind, value []byte) []byte {
	if kind == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

// setSeveral stores the projects of an array, which is valid JSON.
func (w *walk) setSeveral(array jsonText) (wrong string) {
	for i := array.space(1); array.at(i) != ']'; {
		end := array.value(i, 0)
		value := jsontext.Value(array[i:end])
		text, wrong := w.name(value.Kind(), value)
		if wrong != "" {
			return "has an element that " + wrong
		}
		if len(text) > 0 && !slices.Contains(w.several, string(text)) {
			w.several = append(w.several, string(text))
		}
		if len(w.several) > maxSeveral {
			return fmt.Sprintf("has more than %d elements", maxSeveral)
		}
		if i = array.space(end); array.at(i) == ',' {
			i = array.space(i + 1)
		}
	}
	return ""
}

// name returns the text of a project identifier. Equal integers give equal texts.
func (w *walk) name(kind jsontext.Kind, value []byte) (text []byte, wrong string) {
	const must = "must be an integer or a string"
	text, wrong = w.identifier(kind, value, MaxProject, must)
	switch {
	case wrong != "":
		return nil, wrong
	case kind == '0' && bytes.ContainsAny(value, ".eE"):
		return nil, must + ", not " + string(value)
	case string(value) == "-0":
		return value[1:], "" // -0 and 0 are the same integer
	}
	return text, ""
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

// seconds parses a timeout, with nanosecond resolution. A timeout above 0 is never rounded to 0.
func seconds(kind jsontext.Kind, value []byte) (d time.Duration, wrong string) {
	s, wrong := number(kind, value, MaxTimeout.Seconds(), "seconds")
	d = time.Duration(math.Round(s * float64(time.Second)))
	if s > 0 && d == 0 {
		d = 1
	}
	return d, wrong
}

// maxData is the maximum size of a project's data, in bytes.
const maxData = 1e15

// number parses a number from 0 to most. of is the unit, for errors.
func number(kind jsontext.Kind, value []byte, most float64, of string) (n float64, wrong string) {
	if kind != '0' {
		return 0, "must be a number of " + of + ", not " + kindName(kind)
	}
	if len(value) > maxDigits {
		return 0, fmt.Sprintf("is longer than %d digits", maxDigits)
	}
	n, err := strconv.ParseFloat(string(value), 64)
	switch {
	case n < 0:
		return 0, "must not be negative"
	case err != nil || n > most:
		return 0, fmt.Sprintf("must be at most %.0f %s", most, of)
	}
	return n, ""
}

// unquote returns the text of a quoted JSON string, valid until the next call; ok
// is false if it is longer than limit. Invalid UTF-8 becomes U+FFFD.
func (w *walk) unquote(quoted []byte, limit int) (text []byte, ok bool) {
	const longest = len(`\u0000`) // the longest escape of one byte
	if len(quoted) > longest*limit+len(`""`) {
		return nil, false
	}
	text = quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		// The scanner has accepted the string, so the only possible error is invalid UTF-8.
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
