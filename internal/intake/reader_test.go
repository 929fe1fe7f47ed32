package intake

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

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

// Reader and oracle agree on the members of two rows of the table together, and on rows with faults anywhere.
func TestReadAgreesWithOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r, table, classes := newReader(t), rows(t), map[string]int{}
	pieces := []string{"", "", "{", "}", "[", "]", `"`, ":", ",", "0", "x", " ", `\`, "\xff", "\x00", `\u0041`, `\ud83d`, "null", `"high"`, `"project_id":7,`}
	for n := range 20_000 {
		body := table[rng.IntN(len(table))].body
		if other := table[rng.IntN(len(table))].body; len(body) > 2 && len(other) > 2 {
			body = body[:len(body)-1] + "," + other[1:]
		}
		for range rng.IntN(3) {
			from := rng.IntN(len(body) + 1)
			to := min(from+rng.IntN(3), len(body))
			body = body[:from] + pieces[rng.IntN(len(pieces))] + body[to:]
		}
		if n%8 == 0 {
			body = body[:rng.IntN(len(body)+1)]
		}
		classes[requireAgreement(t, r, []byte(body))]++
	}
	for _, class := range []string{"", "syntax", "field"} {
		assert.Greater(t, classes[class], 1500, "the documents exercise %q too little: %v", class, classes)
	}
}

// A cut body is an error to Read and none to readHead, which never takes the
// beginning of a value for the value.
func TestEveryPrefix(t *testing.T) {
	r := newReader(t)
	body := []byte(`{"x":[{"y":"\u0041é"},-1.5e3,true],"timeouts":{"queue_seconds":12.5,"z":null,"evaluate_seconds":120,` +
		`"stream_seconds":300},"project_id":12345,"priority":"high","session_id":"\u0041bc","after":1}`)
	full, _, err := r.read(Head{}, body, true)
	require.Equal(t, `project="12345" priority=high session="Abc" queue=12.5s evaluate=2m0s stream=5m0s`, describe(full, err))
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
		got, want := reflect.ValueOf(head), reflect.ValueOf(full)
		for i := range got.NumField() {
			require.True(t, got.Field(i).IsZero() || got.Field(i).Equal(want.Field(i)), "%s of %q", got.Type().Field(i).Name, body[:n])
		}
	}
	head, _, err := r.read(Head{}, body[:last], false)
	require.NoError(t, err)
	assert.Equal(t, full, head)
}

func TestLimitsOfTexts(t *testing.T) {
	r := newReader(t)
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
	r := newReader(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		class := requireAgreement(t, r, body)
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
