package intake

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// classOf names the kind of an error as the oracle does.
func classOf(tb testing.TB, err error) string {
	if err == nil {
		return ""
	}
	var at *bodyError
	require.ErrorAs(tb, err, &at)
	if at.valid {
		return "field"
	}
	return "syntax"
}

// randomValue writes some JSON value.
func randomValue(rng *rand.Rand, depth int) string {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	switch rng.IntN(kinds) {
	case 0:
		return "null"
	case 1:
		return []string{"true", "false"}[rng.IntN(2)]
	case 2:
		return strconv.Itoa(rng.IntN(1000) - 10)
	case 3:
		return []string{"0.5", "-0", "1e3", "1.25E-2", "18446744073709551616", "3e9"}[rng.IntN(6)]
	case 4, 5:
		return `"` + strings.Repeat(randomChar(rng), rng.IntN(4)) + randomChar(rng) + `"`
	case 6:
		return []string{`"high"`, `"low"`, `""`, `"12345"`, `"project_id"`, `"hi\u0067h"`}[rng.IntN(6)]
	case 7:
		parts := make([]string, rng.IntN(4))
		for i := range parts {
			parts[i] = randomValue(rng, depth-1)
		}
		return "[" + strings.Join(parts, space(rng)+","+space(rng)) + "]"
	}
	return randomObject(rng, depth-1)
}

func randomChar(rng *rand.Rand) string {
	return []string{"a", "0", `\"`, `\\`, `\u0041`, `\ud83d`, `\ude00`, "é", "😀", "\xff", "{", "}", ":", ",", " ", "[", `\n`}[rng.IntN(17)]
}

func space(rng *rand.Rand) string {
	return []string{"", "", " ", "\n\t"}[rng.IntN(4)]
}

// randomObject writes an object with a liking for the wanted names.
func randomObject(rng *rand.Rand, depth int) string {
	names := []string{
		`"project_id"`, `"priority"`, `"session_id"`, `"timeouts"`, `"queue_seconds"`, `"evaluate_seconds"`, `"stream_seconds"`,
		`"project\u005fid"`, `"operators"`, `"x"`, `"y"`, `""`, `"é\n"`,
	}
	members := make([]string, rng.IntN(8))
	for i := range members {
		name := names[rng.IntN(len(names))]
		value := randomValue(rng, depth)
		switch {
		case rng.IntN(4) == 0:
		case strings.HasSuffix(name, `_seconds"`):
			value = strconv.Itoa(rng.IntN(100))
		case name == `"priority"`:
			value = `"high"`
		case name == `"timeouts"` && depth > 0:
			value = randomObject(rng, depth-1)
		}
		members[i] = space(rng) + name + space(rng) + ":" + space(rng) + value
	}
	return "{" + strings.Join(members, space(rng)+",") + space(rng) + "}"
}

// damage changes a body so that it is probably no longer JSON.
func damage(rng *rand.Rand, body []byte) []byte {
	at := rng.IntN(len(body))
	switch rng.IntN(3) {
	case 0:
		return body[:at]
	case 1:
		return append(bytes.Clone(body[:at]), body[at+1:]...)
	}
	b := bytes.Clone(body)
	b[at] = `{}[]",:0x\ `[rng.IntN(11)]
	return b
}

func TestReadAgreesWithOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := newReader(t, pointers{})
	classes := map[string]int{}
	for n := range 20_000 {
		body := []byte(strings.Repeat(space(rng), rng.IntN(word)) + randomObject(rng, 5))
		for range rng.IntN(3) {
			body[rng.IntN(len(body))] = byte(rng.IntN(256))
		}
		if n%8 == 0 {
			body = damage(rng, body)
		}
		classes[requireAgreement(t, r, body)]++
	}
	for _, class := range []string{"", "syntax", "field"} {
		assert.Greater(t, classes[class], 1500, "the documents exercise %q too little: %v", class, classes)
	}
}

// A cut body is an error to Read and none to readHead, which never takes the
// beginning of a value for the value.
func TestEveryPrefix(t *testing.T) {
	r := newReader(t, pointers{})
	body := []byte(`{"x":[{"y":"\u0041é"},-1.5e3,true],"timeouts":{"queue_seconds":12.5,"z":null,"evaluate_seconds":120,` +
		`"stream_seconds":300},"project_id":12345,"priority":"high","session_id":"\u0041bc","after":1}`)
	full, _, err := r.read(Head{}, body, true)
	require.NoError(t, err)
	last := bytes.Index(body, []byte(`,"after"`))
	for n := range len(body) {
		_, _, err := r.read(Head{}, body[:n], true)
		if n < last {
			require.Equal(t, "syntax", classOf(t, err), "%q", body[:n])
		} else {
			require.NoError(t, err, "%q", body[:n])
		}

		head, _, err := r.read(Head{}, body[:n], false)
		require.NoError(t, err, "%q", body[:n])
		for _, c := range []struct{ member, got, want, zero any }{
			{"project", head.Project, "12345", ""},
			{"key", head.Key, full.Key, uint64(0)},
			{"priority", head.Priority, selection.High, selection.Low},
			{"session", head.Session, "Abc", ""},
			{"queue", head.Queue, full.Queue, time.Duration(0)},
			{"evaluate", head.Evaluate, full.Evaluate, time.Duration(0)},
			{"stream", head.Stream, full.Stream, time.Duration(0)},
		} {
			require.Contains(t, []any{c.want, c.zero}, c.got, "%s of %q", c.member, body[:n])
		}
	}
	head, _, err := r.read(Head{}, body[:last], false)
	require.NoError(t, err)
	assert.Equal(t, full, head)
}

func TestLimitsOfTexts(t *testing.T) {
	r := newReader(t, pointers{})
	for _, c := range []struct {
		member string
		limit  int
	}{{"project_id", MaxProject}, {"session_id", maxSession}} {
		for _, char := range []struct {
			json string
			size int
		}{{"a", 1}, {`\u0061`, 1}, {"é", 2}, {`\ud83d\ude00`, 4}} {
			full := strings.Repeat(char.json, c.limit/char.size)
			facts, _, err := r.read(Head{}, fmt.Appendf(nil, `{%q:"%s"}`, c.member, full), true)
			require.NoError(t, err)
			assert.Equal(t, c.limit, len(facts.Project)+len(facts.Session))
			_, _, err = r.read(Head{}, fmt.Appendf(nil, `{%q:"%s"}`, c.member, full+char.json), true)
			if c.member == "session_id" {
				require.NoError(t, err, "nothing depends on it")
				continue
			}
			assert.Equal(t, "field", classOf(t, err), "%s of %s", c.member, char.json)
		}
	}
}

func TestFactsDoNotShareTheBody(t *testing.T) {
	r := newReader(t, pointers{})
	project := strings.Repeat("p", 200)
	body := []byte(`{"project_id":"` + project + `","session_id":"abc"}`)
	facts, _, err := r.read(Head{}, body, true)
	require.NoError(t, err)
	for i := range body {
		body[i] = '#'
	}
	assert.Equal(t, project, facts.Project)
	assert.Equal(t, "abc", facts.Session)
}

// Describe reports whether a request was read as a job, and if not, the reason: a job of high priority must not
// silently become one of low priority.
func TestWhatIsReadAsAJob(t *testing.T) {
	const form = "application/x-www-form-urlencoded" // what curl -d says of every body
	const posted, most = `{"project_id":1,"priority":"high"}`, "its body is not kept, and the first bytes lack the project or the priority"
	rest := `"rules":"` + strings.Repeat("x", 100) // of a body whose beginning is kept
	for name, c := range map[string]struct {
		method, contentType, coding, body string
		read                              Reading
		unread                            string
	}{
		"JSON":                     {"POST", "application/json", "", posted, Full, ""},
		"JSON, written oddly":      {"POST", "Application/JSON; charset=utf-8", "", posted, Full, ""},
		"a kind of JSON":           {"POST", "application/vnd.x+json", "", posted, Full, ""},
		"objects in a row":         {"POST", "application/stream+json", "", `{"project_id":1}` + "\n" + posted, Unread, `its Content-Type is "application/stream+json", and its body is not a job: invalid JSON at byte 17: unexpected data after the job's object`},
		"an array of a +json type": {"POST", "application/json-patch+json", "", "[" + posted + "]", Unread, `its body does not begin with {, and its Content-Type is "application/json-patch+json"`},
		"a byte order mark":        {"POST", "application/json", "", "\xEF\xBB\xBF" + posted, Full, ""},
		"a mark of a +json type":   {"POST", "application/vnd.x+json", "", "\xEF\xBB\xBF" + posted, Full, ""},
		"no type":                  {"POST", "", "", posted, Full, ""},
		"not encoded":              {"POST", "", "identity", posted, Full, ""},
		"a form that is an object": {"POST", form, "", posted, Full, ""},
		"text that is an object":   {"POST", "text/plain", "", "\r\n\t " + posted, Full, ""},
		"without a project":        {"POST", form, "", `{"priority":"high"}`, NoProject, ""},
		"GET":                      {"GET", "", "", "", Unread, "its method is not POST"},
		"another method":           {"PUT", "application/json", "", posted, Unread, "its method is not POST"},
		"an empty POST":            {"POST", "application/json", "", "", Unread, "it has no body"},
		"a form":                   {"POST", form, "", "a=b", Unread, `its body does not begin with {, and its Content-Type is "application/x-www-form-urlencoded"`},
		"an unfinished object":     {"POST", "text/csv", "", `{"project_id":`, Unread, `its Content-Type is "text/csv", and its body is not a job: invalid JSON at byte 14: the body ends within the job`},
		"an object that is no job": {"POST", "text/csv", "", `{"priority":"urgent"}`, Unread, `its Content-Type is "text/csv", and its body is not a job: /priority at byte 12 must be "high" or "low", not "urgent"`},
		"encoded":                  {"POST", "application/json", "gzip", posted, Unread, `its body is encoded: "gzip"`},
		"a beginning":              {"POST", "", "", `{"project_id":1,"priority":"high",` + rest, Full, ""},
		"a beginning that lacks":   {"POST", "", "", `{"project_id":1,` + rest, Partly, most},
	} {
		h := http.Header{"Content-Type": {c.contentType}, "Content-Encoding": {c.coding}}
		r, err := NewReader(Default())
		require.NoError(t, err)
		d, err := r.Describe(Head{Method: c.method, Path: "/", Header: h}, []byte(c.body), !strings.Contains(c.body, rest))
		require.NoError(t, err, name)
		assert.Equal(t, c.read, d.Reading, name)
		assert.Equal(t, c.unread, d.Unread, name)
		assert.Equal(t, c.read == Full || c.read == Partly, d.Facts.Key != 0, name)
		assert.Equal(t, c.read == Full || c.read == NoProject, d.Facts.Priority == selection.High, name)
	}
}

func FuzzRead(f *testing.F) {
	for _, row := range rows(f) {
		f.Add([]byte(row.body))
	}
	r := newReader(f, pointers{})
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		class := requireAgreement(t, r, body)
		require.Equal(t, before, body)

		want, _, _ := r.read(Head{}, body, true)
		head, _, err := r.read(Head{}, body, false)
		if class == "" {
			require.NoError(t, err)
			require.Equal(t, want, head, "a whole body is a head")
		}
		if err != nil {
			require.Equal(t, class, classOf(t, err), "a head is refused only for what a body is")
		}
	})
}
