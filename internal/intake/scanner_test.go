package intake

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	for value, valid := range map[string]bool{
		`[1,-2,0,-0,0.5,10.25e+3,1E-9]`: true, `[true,false,null]`: true, `[]`: true, `{}`: true, `[[],{},[[]]]`: true,
		`[ 1 , { "a" : "b" , "c" : [ ] } ]`: true, "\t{\r\n}": true, `[{"a":"b"},{"a":"b"}]`: true, `[["a"],"b"]`: true,
		`[01]`: false, `[-]`: false, `[1.]`: false, `[.5]`: false, `[1e]`: false, `[1e+]`: false, `[+1]`: false, `[--1]`: false, `[1 2]`: false,
		`[tru]`: false, `[truex]`: false, `[nul]`: false, `[fals]`: false, `[fals ]`: false, `[falsx]`: false,
		`[1,]`: false, `[,1]`: false, `[,]`: false, `[1`: false, `[1}`: false, `{"a":1]`: false, `{"a":1,}`: false, `{,}`: false, `[}`: false, `{]`: false,
		`{"a"}`: false, `{"a":}`: false, `{"a","b"}`: false, `{"a":"b":"c"}`: false, `{"a":"b","c"}`: false, `{"a":"b" "c":1}`: false, `["a":"b"]`: false,
		`["a""b"]`: false, `["a" "b"]`: false, `{1:2}`: false, `{true:1}`: false, `{[]:1}`: false, `{{}:1}`: false, `[:]`: false, `[\"a\"]`: false,
		"[\x00]": false, "[\v1]": false, "[\xa0]": false, ``: false, `,`: false, `:1`: false, `}`: false, `]`: false, `"`: false, `"a`: false,
	} {
		for _, body := range []string{`{"x":` + value + `}`, `{"x":` + value + `,"project_id":1}`, `{"project_id":1,"timeouts":{"x":` + value + `,"queue_seconds":1}}`} {
			require.Equal(t, valid, requireAgreement(t, r, []byte(body)) == "", "%q", body)
		}
	}
	for body, valid := range map[string]bool{
		`{}`: true, ` { } `: true, `{}{}`: false, `{}x`: false, `{},`: false, `}`: false, `{`: false, ``: false, `[]`: false, `1`: false, `{"a":1`: false,
		`{"a":1}}`: false, `{"timeouts":{}}`: true, `{"timeouts":{},}`: false, `{"timeouts":{} "a":1}`: false, `{{}}`: false, `{"timeouts":{`: false,
		`{"timeouts":{"a":1,}}`: false, `{"a" "b"}`: false, `{"a":1 "b":2}`: false, `{"a",1}`: false, `{:1}`: false, `{"a"::1}`: false, `{"a":1,,"b":1}`: false,
	} {
		assert.Equal(t, valid, requireAgreement(t, r, []byte(body)) == "", "%q", body)
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
