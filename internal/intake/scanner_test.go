package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// oracle reads the facts of a job at the default fields as slowly and plainly as it can, with
// encoding/json. It returns "syntax" or "field" as the class of an error.
func oracle(body []byte) (Facts, string) {
	o := &naive{body: body, dec: json.NewDecoder(bytes.NewReader(body)), wanted: map[string]bool{
		"/project_id": true, "/priority": true, "/session_id": true,
		"/timeouts/queue_seconds": true, "/timeouts/evaluate_seconds": true, "/timeouts/stream_seconds": true,
	}}
	o.dec.UseNumber() // a number too large for a float is still a number
	text := bytes.TrimLeft(body, " \t\r\n")
	if len(text) == 0 {
		return Facts{}, "syntax"
	}
	if text[0] != '{' {
		if tok, err := o.dec.Token(); err != nil || tok == json.Delim(']') || tok == json.Delim('}') {
			return Facts{}, "syntax"
		}
		return Facts{}, "field"
	}
	class := o.object("")
	if o.closed && len(bytes.TrimLeft(body[o.dec.InputOffset():], " \t\r\n")) > 0 {
		class = "syntax"
	}
	if class != "" {
		return Facts{}, class
	}
	return o.facts, ""
}

type naive struct {
	body   []byte
	dec    *json.Decoder
	wanted map[string]bool // pointers that may still come
	seen   []string        // pointers that came
	closed bool            // the top object
	facts  Facts
}

func (o *naive) object(pointer string) string {
	if _, err := o.dec.Token(); err != nil {
		return "syntax"
	}
	for {
		tok, err := o.dec.Token()
		if err != nil {
			return "syntax"
		}
		if tok == json.Delim('}') {
			o.drop(pointer)
			o.closed = pointer == ""
			return ""
		}
		name, ok := tok.(string)
		if !ok {
			return "syntax"
		}
		if class := o.member(pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)); class != "" {
			return class
		}
		if len(o.wanted) == 0 {
			return ""
		}
	}
}

// drop removes all that is wanted at the pointer or below.
func (o *naive) drop(pointer string) {
	for w := range o.wanted {
		if w == pointer || strings.HasPrefix(w, pointer+"/") {
			delete(o.wanted, w)
		}
	}
}

func (o *naive) member(pointer string) string {
	leaf := map[string]bool{
		"/project_id": true, "/priority": true, "/session_id": true,
		"/timeouts/queue_seconds": true, "/timeouts/evaluate_seconds": true, "/timeouts/stream_seconds": true,
	}[pointer]
	if leaf || pointer == "/timeouts" {
		for _, s := range o.seen {
			if s == pointer {
				return "field"
			}
		}
		o.seen = append(o.seen, pointer)
	}
	if pointer == "/timeouts" && o.peek("{") {
		return o.object(pointer)
	}
	var raw json.RawMessage
	if o.dec.Decode(&raw) != nil {
		return "syntax"
	}
	if !leaf && pointer != "/timeouts" {
		return ""
	}
	o.drop(pointer)
	if string(raw) == "null" {
		return ""
	}
	if last := raw[len(raw)-1]; '0' <= last && last <= '9' && o.dec.InputOffset() == int64(len(o.body)) {
		return "syntax" // the number may have been cut
	}
	if !o.set(pointer, raw) {
		return "field"
	}
	return ""
}

// peek reports whether the value to come begins like c.
func (o *naive) peek(c string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(o.body[o.dec.InputOffset():], " \t\r\n:"), []byte(c))
}

func (o *naive) set(pointer string, raw json.RawMessage) bool {
	var s string
	var n json.Number
	isString := json.Unmarshal(raw, &s) == nil
	isNumber := !isString && json.Unmarshal(raw, &n) == nil
	switch pointer {
	case "/project_id":
		var array []json.RawMessage
		if !isString && json.Unmarshal(raw, &array) == nil {
			return o.several(array)
		}
		if isNumber {
			if s = n.String(); strings.ContainsAny(s, ".eE") {
				return false
			}
			if s == "-0" {
				s = "0"
			}
		}
		o.facts.Project, o.facts.Key = s, Key(s)
		return (isString || isNumber) && len(s) <= MaxProject
	case "/session_id":
		if isNumber {
			s = n.String()
		}
		if len(s) <= maxSession {
			o.facts.Session = s
		}
		return true
	case "/priority":
		if s == "high" {
			o.facts.Priority = selection.High
		}
		return isString && (s == "high" || s == "low")
	case "/timeouts":
		return false
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	if !isNumber || err != nil || f < 0 || f > math.MaxInt32 || len(n) > 64 {
		return false
	}
	d := time.Duration(math.Round(f * 1e9))
	if f > 0 {
		d = max(d, 1)
	}
	switch pointer {
	case "/timeouts/queue_seconds":
		o.facts.Queue = d
	case "/timeouts/evaluate_seconds":
		o.facts.Evaluate = d
	case "/timeouts/stream_seconds":
		o.facts.Stream = d
	}
	return true
}

// several takes the projects of an array: each is read as if it were alone.
func (o *naive) several(array []json.RawMessage) bool {
	all := map[string]bool{}
	for _, element := range array {
		one := &naive{}
		if string(element) == "null" || bytes.HasPrefix(element, []byte("[")) || !one.set("/project_id", element) {
			return false
		}
		if all[one.facts.Project] = true; len(all) > maxSeveral && !all[""] || len(all) > maxSeveral+1 {
			return false
		}
	}
	delete(all, "")
	names := slices.Sorted(maps.Keys(all))
	name := strings.Join(names, "+")
	if len(name) > MaxProject && len(names) > 1 {
		name = fmt.Sprintf("%016x", Key(name))
	}
	o.facts.Project, o.facts.Key = name, Key(name)
	if len(names) > 1 {
		o.facts.Data = &Parts{Set: true}
	}
	for _, one := range names {
		if len(names) > 1 {
			o.facts.Data.Parts = append(o.facts.Data.Parts, Part{Key: Key(one)})
		}
	}
	return true
}

// word is how many bytes the scanner looks at together.
const word = 8

// requireValue holds the scanner against jsontext: it accepts the same values, and sees the same ends.
func requireValue(t *testing.T, text jsonText) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := dec.ReadValue()
	if end := text.value(text.space(0), 0); err != nil {
		require.Equal(t, text.beyond(), end, "the scanner accepts %q", text)
	} else {
		require.EqualValues(t, dec.InputOffset(), end, "%q", text)
	}
}

// requireAgreement holds the scanner against jsontext, and what is read with it against the oracle. It returns
// the class of the error.
func requireAgreement(t *testing.T, r *Reader, body []byte) (class string) {
	requireValue(t, body)
	want, class := oracle(body)
	got, _, err := r.read(Head{}, body, true)
	require.Equal(t, class, classOf(t, err), "%q: %v", body, err)
	require.Equal(t, want, got, "%q", body)
	return class
}

func FuzzScanner(f *testing.F) {
	for _, row := range rows(f) {
		f.Add([]byte(row.body), uint8(len(row.body)))
	}
	f.Add(jobOf(1<<10, false), uint8(0))
	f.Fuzz(func(t *testing.T, text []byte, shift uint8) {
		requireValue(t, append(bytes.Repeat([]byte(" "), int(shift%word)), text...))
	})
}

// What begins, ends or is wrong in a string is found wherever it is in a word.
func TestScannerAcrossWords(t *testing.T) {
	r := newReader(t, pointers{})
	for text, valid := range map[string]bool{
		`\"`: true, `\\`: true, `\\\"`: true, `\u00fF`: true, `\ud800`: true, "é": true, "\xff": true, "\x7f": true, `{[]}:,`: true, "": true,
		"\n": false, "\x00": false, "\x1f": false, `\x`: false, `\u00g0`: false, `\u00`: false, `\`: false, `\\\`: false, `"`: false,
	} {
		for at := range 3*word + 1 {
			for _, after := range []int{0, 1, word} {
				body := fmt.Sprintf(`{"x":["%s%s%s","y"],"project_id":1}`, strings.Repeat("x", at), text, strings.Repeat("x", after))
				require.Equal(t, valid, requireAgreement(t, r, []byte(body)) == "", "%q", body)
			}
		}
	}
}

func TestScannerGrammar(t *testing.T) {
	r := newReader(t, pointers{})
	for _, row := range table(t, "testdata/grammar.txt") {
		bodies := []string{row.body}
		if row.name == "value" {
			bodies = []string{`{"x":` + row.body + `}`, `{"x":` + row.body + `,"project_id":1}`, `{"project_id":1,"timeouts":{"x":` + row.body + `,"queue_seconds":1}}`}
		}
		for _, body := range bodies {
			assert.Equal(t, row.want == "y", requireAgreement(t, r, []byte(body)) == "", "line %d: %q", row.line, body)
		}
	}
}

// The bound on levels is jsontext's, wherever they are in a job.
func TestScannerDepth(t *testing.T) {
	r := newReader(t, pointers{})
	for levels, valid := range map[int]bool{maxDepth - 1: true, maxDepth: false} {
		value := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		requireValue(t, jsonText(`{"x":`+value+`}`))
		_, _, err := r.read(Head{}, []byte(`{"x":`+value+`}`), true)
		assert.Equal(t, valid, err == nil, "%v", err)
		_, _, err = r.read(Head{}, []byte(`{"timeouts":{"x":`+value[1:2*levels-1]+`}}`), true)
		assert.Equal(t, valid, err == nil, "%v", err)
	}
}

// Each bracket closes its own array or object, also where a call of nested ends.
func TestScannerBrackets(t *testing.T) {
	const pairs = levels // arrays in objects, twice as many levels as a call has
	text := strings.Repeat(`{"a":[`, pairs) + strings.Repeat(`]}`, pairs)
	requireValue(t, jsonText(text))
	for i := range text {
		if swapped := strings.NewReplacer("[", "{", "]", "}", "{", "[", "}", "]").Replace(text[i : i+1]); swapped != text[i:i+1] {
			requireValue(t, jsonText(text[:i]+swapped+text[i+1:]))
		}
	}
}

const (
	wantedMembers = `"session_id":"5531f48d-74f0-4b52-8203-470d5ed8aa90","project_id":12345,"priority":"high",` +
		`"timeouts":{"queue_seconds":15,"evaluate_seconds":120,"stream_seconds":300}`
	operator = `{"name": "Set availability", "condition": [{"field": "stock", "filter": "is_greater_than", "value": {"type": "static", "value": 0}}], ` +
		`"actions": [{"field": "availability", "action": "set", "value": "in stock"}]}`
)

// jobOf returns a job of about size bytes with the wanted members at one end.
func jobOf(size int, first bool) []byte {
	operators := max(1, (size-len(wantedMembers))/len(operator))
	rules := `"operators":[` + strings.Repeat(operator+", ", operators-1) + operator + "]"
	if first {
		return []byte("{" + wantedMembers + "," + rules + "}")
	}
	return []byte("{" + rules + "," + wantedMembers + "}")
}
