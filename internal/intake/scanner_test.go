package intake

import (
	"bytes"
	"cmp"
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

// oracle reads the facts of a job at the default places as slowly and plainly as it can. It returns "syntax" or "field"
// as the class of an error.
func oracle(body []byte) (facts Facts, class string) {
	left := map[string]bool{ // members that can still follow
		"/project_id": true, "/priority": true, "/session_id": true,
		"/timeouts/queue_seconds": true, "/timeouts/evaluate_seconds": true, "/timeouts/stream_seconds": true,
	}
	wanted := maps.Clone(left)
	wanted["/timeouts"] = true
	drop := func(pointer string) {
		maps.DeleteFunc(left, func(p string, _ bool) bool { return p == pointer || strings.HasPrefix(p, pointer+"/") })
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	kind := dec.PeekKind()
	if _, err := dec.ReadToken(); err != nil {
		return Facts{}, "syntax"
	} else if kind != '{' {
		return Facts{}, "field"
	}
	seen, within := map[string]bool{}, "" // the pointer to the object
	for len(left) > 0 {
		name, err := dec.ReadToken()
		if err != nil {
			return Facts{}, "syntax"
		}
		if name.Kind() == '}' {
			drop(within)
			if within == "" && len(bytes.TrimLeft(body[dec.InputOffset():], " \t\r\n")) > 0 {
				return Facts{}, "syntax"
			}
			within = ""
			continue
		}
		pointer := within + "/" + strings.ReplaceAll(name.String(), "/", "~1")
		if wanted[pointer] && seen[pointer] {
			return Facts{}, "field"
		}
		seen[pointer] = true
		if pointer == "/timeouts" && dec.PeekKind() == '{' {
			_, _ = dec.ReadToken()
			within = pointer
			continue
		}
		value, err := dec.ReadValue()
		if err != nil {
			return Facts{}, "syntax"
		}
		if !wanted[pointer] {
			continue
		}
		if value.Kind() == '0' && dec.InputOffset() == int64(len(body)) {
			return Facts{}, "syntax" // the number may have been cut
		}
		drop(pointer)
		if value.Kind() != 'n' && !setPlainly(&facts, pointer, value) {
			return Facts{}, "field"
		}
	}
	return facts, ""
}

// setPlainly sets the fact at a pointer by encoding/json, and reports whether the value is valid.
func setPlainly(f *Facts, pointer string, value []byte) bool {
	var s string
	var n json.Number
	isString := json.Unmarshal(value, &s) == nil
	isNumber := !isString && json.Unmarshal(value, &n) == nil
	switch pointer {
	case "/project_id":
		var array []json.RawMessage
		if !isString && json.Unmarshal(value, &array) == nil {
			return setSeveralPlainly(f, array)
		}
		if isNumber {
			if s = n.String(); strings.ContainsAny(s, ".eE") {
				return false
			}
			if s == "-0" {
				s = "0"
			}
		}
		f.Project, f.Key = s, Key(s)
		return (isString || isNumber) && len(s) <= MaxProject
	case "/session_id":
		if s = cmp.Or(s, n.String()); len(s) <= maxSession {
			f.Session = s
		}
		return true
	case "/priority":
		if s == "high" {
			f.Priority = selection.High
		}
		return isString && (s == "high" || s == "low")
	case "/timeouts":
		return false
	}
	seconds, err := strconv.ParseFloat(n.String(), 64)
	if !isNumber || err != nil || seconds < 0 || seconds > math.MaxInt32 || len(n) > 64 {
		return false
	}
	d := time.Duration(math.Round(seconds * 1e9))
	if seconds > 0 {
		d = max(d, 1)
	}
	*map[string]*time.Duration{
		"/timeouts/queue_seconds": &f.Queue, "/timeouts/evaluate_seconds": &f.Evaluate, "/timeouts/stream_seconds": &f.Stream,
	}[pointer] = d
	return true
}

// setSeveralPlainly sets the projects of an array: each is read as if it were alone.
func setSeveralPlainly(f *Facts, array []json.RawMessage) bool {
	all := map[string]bool{}
	for _, element := range array {
		var one Facts
		if string(element) == "null" || bytes.HasPrefix(element, []byte("[")) || !setPlainly(&one, "/project_id", element) {
			return false
		}
		if one.Project != "" {
			all[one.Project] = true
		}
		if len(all) > maxSeveral {
			return false
		}
	}
	names := slices.Sorted(maps.Keys(all))
	name := strings.Join(names, "+")
	if len(names) > 1 {
		if len(name) > MaxProject {
			name = fmt.Sprintf("%016x", Key(name))
		}
		f.Data = &Parts{Set: true}
		for _, one := range names {
			f.Data.Parts = append(f.Data.Parts, Part{Key: Key(one)})
		}
	}
	f.Project, f.Key = name, Key(name)
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
// the class of the error. The facts must not share the memory of the body, which is used again.
func requireAgreement(t *testing.T, r *Reader, body []byte) (class string) {
	requireValue(t, body)
	want, class := oracle(body)
	own := bytes.Clone(body)
	got, _, err := r.read(Head{}, own, true)
	require.Equal(t, body, own, "it was changed")
	clear(own)
	require.Equal(t, class, classOf(t, err), "%q: %v", body, err)
	require.Equal(t, want, got, "%q", body)
	return class
}

func FuzzScanner(f *testing.F) {
	for _, row := range rows(f) {
		f.Add([]byte(row.body), uint8(len(row.body)))
	}
	f.Fuzz(func(t *testing.T, text []byte, shift uint8) {
		requireValue(t, append(bytes.Repeat([]byte(" "), int(shift%word)), text...))
	})
}

// The scanner tests strings in words of 8 bytes. Escapes, ends and invalid bytes are found at each position within a word.
func TestScannerAcrossWords(t *testing.T) {
	r := newReader(t)
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
	r := newReader(t)
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

// The maximum depth is that of jsontext, and counts from the job's object, both in a skipped member and within timeouts.
func TestScannerDepth(t *testing.T) {
	r := newReader(t)
	for levels, valid := range map[int]bool{maxDepth - 1: true, maxDepth: false} {
		value := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		requireValue(t, jsonText(`{"x":`+value+`}`))
		_, _, err := r.read(Head{}, []byte(`{"x":`+value+`}`), true)
		assert.Equal(t, valid, err == nil, "%d arrays in x: %v", levels, err)
		_, _, err = r.read(Head{}, []byte(`{"timeouts":{"x":`+value[1:2*levels-1]+`}}`), true)
		assert.Equal(t, valid, err == nil, "%d arrays in timeouts: %v", levels-1, err)
	}
}

// A bracket of the wrong kind is an error at each depth, also where nested calls itself for the next 64 levels.
func TestScannerBrackets(t *testing.T) {
	const pairs = levels // of an object and an array: twice as many levels as one call scans
	text := strings.Repeat(`{"a":[`, pairs) + strings.Repeat(`]}`, pairs)
	requireValue(t, jsonText(text))
	for i := range text {
		if swapped := strings.NewReplacer("[", "{", "]", "}", "{", "[", "}", "]").Replace(text[i : i+1]); swapped != text[i:i+1] {
			requireValue(t, jsonText(text[:i]+swapped+text[i+1:]))
		}
	}
}
