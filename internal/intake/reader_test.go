package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// classOf names the kind of an error as the oracle does.
func classOf(tb testing.TB, err error) string {
	var syntax *syntaxError
	var field *fieldError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &syntax):
		return "syntax"
	case errors.As(err, &field):
		return "field"
	}
	tb.Fatalf("%T is neither a syntaxError nor a fieldError: %v", err, err)
	return ""
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
	for range 15_000 {
		body := []byte(randomObject(rng, 4))
		if rng.IntN(3) == 0 {
			body = damage(rng, body)
		}
		want, class := oracle(body)
		got, _, err := r.read(Head{}, body, true)
		require.Equal(t, class, classOf(t, err), "%q: %v", body, err)
		require.Equal(t, want, got, "%q", body)
		classes[class]++
	}
	for _, class := range []string{"", "syntax", "field"} {
		assert.Greater(t, classes[class], 1500, "the documents exercise %q too little: %v", class, classes)
	}
}

func TestOracleAgreesWithTable(t *testing.T) {
	for _, row := range rows(t) {
		facts, class := oracle([]byte(row.body))
		switch row.name[:2] {
		case "n_":
			assert.Equal(t, "syntax", class, row.name)
		case "f_":
			assert.Equal(t, "field", class, row.name)
		default:
			assert.Empty(t, class, row.name)
			assert.Equal(t, row.want, describe(facts, nil), row.name)
		}
	}
}

func TestOrderOfMembersDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	r := newReader(t, pointers{})
	inner := []string{`"queue_seconds":1`, `"evaluate_seconds":2`, `"stream_seconds":3`, `"x":[{"queue_seconds":9}]`}
	for range 500 {
		rng.Shuffle(len(inner), func(i, j int) { inner[i], inner[j] = inner[j], inner[i] })
		outer := []string{
			`"project_id":42`, `"priority":"high"`, `"session_id":"s"`, `"timeouts":{` + strings.Join(inner, ",") + `}`,
			`"a":` + randomValue(rng, 3), `"b":` + randomValue(rng, 3),
		}
		rng.Shuffle(len(outer), func(i, j int) { outer[i], outer[j] = outer[j], outer[i] })
		body := "{" + strings.Join(outer, ",") + "}"
		facts, _, err := r.read(Head{}, []byte(body), true)
		require.NoError(t, err, body)
		require.Equal(t, Facts{
			Project: NewText("42"), Key: Key("42"), Priority: selection.High, Session: NewText("s"),
			Queue: time.Second, Evaluate: 2 * time.Second, Stream: 3 * time.Second,
		}, facts, body)
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
			{"project", head.Project.String(), "12345", ""},
			{"key", head.Key, full.Key, uint64(0)},
			{"priority", head.Priority, selection.High, selection.Low},
			{"session", head.Session.String(), "Abc", ""},
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

func TestReadHeadStillRefusesWhatItSees(t *testing.T) {
	r := newReader(t, pointers{})
	for body, class := range map[string]string{
		`{"priority":"urgent","x":[1,`: "field",
		`{"project_id":1,"project_id"`: "field",
		`[1,2`:                         "field",
		`{"a":1,}`:                     "syntax",
		`{"a":tru}`:                    "syntax",
	} {
		_, _, err := r.read(Head{}, []byte(body), false)
		assert.Equal(t, class, classOf(t, err), body)
	}
}

// maxDepth is jsontext's bound on the nesting of arrays and objects.
const maxDepth = 10_000

func TestNesting(t *testing.T) {
	r := newReader(t, pointers{})
	nest := func(levels int) string {
		return `{"x":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `,"project_id":1}`
	}
	for _, levels := range []int{100, 1000, maxDepth - 1} {
		facts, _, err := r.read(Head{}, []byte(nest(levels)), true)
		require.NoError(t, err, "%d levels", levels)
		assert.Equal(t, "1", facts.Project.String())
	}
	for _, body := range []string{
		nest(maxDepth), nest(1_000_000),
		strings.Repeat(`{"x":`, 1_000_000), `{"x":` + strings.Repeat(`[`, 1_000_000), `{"timeouts":` + strings.Repeat(`{"timeouts":`, 1_000_000),
	} {
		_, _, err := r.read(Head{}, []byte(body), true)
		require.Equal(t, "syntax", classOf(t, err))
		assert.Contains(t, err.Error(), "exceeded max depth")
		assert.Less(t, len(err.Error()), 400, "an error stays readable")
	}
}

func TestLongValues(t *testing.T) {
	r := newReader(t, pointers{})
	long := strings.Repeat("9", 2<<20)
	for _, skipped := range []string{
		`"` + long + `"`, long, "-" + long, "0." + long, `["` + long + `"]`, `{"` + long + `":1}`,
		`"` + strings.Repeat(`\u0039`, 1<<18) + `"`,
	} {
		facts, _, err := r.read(Head{}, []byte(`{"x":`+skipped+`,"project_id":7}`), true)
		require.NoError(t, err)
		assert.Equal(t, "7", facts.Project.String())
	}
	facts, _, err := r.read(Head{}, []byte(`{"`+long+`":1,"`+strings.Repeat(`\u0039`, 1<<18)+`":1,"project_id":7}`), true)
	require.NoError(t, err)
	assert.Equal(t, "7", facts.Project.String())

	for _, c := range []struct{ body, want string }{
		{`{"project_id":"` + long + `"}`, "/project_id at line 1, column 15 (byte 14) is longer than 256 bytes"},
		{`{"project_id":` + long + `}`, "/project_id at line 1, column 15 (byte 14) is longer than 256 digits"},
		{`{"project_id":1.` + long + `}`, "/project_id at line 1, column 15 (byte 14) is longer than 256 digits"},
		{`{"session_id":"` + long + `"}`, "/session_id at line 1, column 15 (byte 14) is longer than 128 bytes"},
		{`{"session_id":` + long + `}`, "/session_id at line 1, column 15 (byte 14) is longer than 128 digits"},
		{`{"priority":"` + long + `"}`, `/priority at line 1, column 13 (byte 12) must be "high" or "low"`},
		{`{"timeouts":{"queue_seconds":` + long + `}}`, "/timeouts/queue_seconds at line 1, column 30 (byte 29) is longer than 64 digits"},
	} {
		_, _, err := r.read(Head{}, []byte(c.body), true)
		assert.EqualError(t, err, c.want)
	}
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
			assert.Equal(t, c.limit, len(facts.Project.String())+len(facts.Session.String()))
			_, _, err = r.read(Head{}, fmt.Appendf(nil, `{%q:"%s"}`, c.member, full+char.json), true)
			assert.Equal(t, "field", classOf(t, err), "%s of %s", c.member, char.json)
		}
	}
}

func TestReadLeavesTheBodyAlone(t *testing.T) {
	r := newReader(t, pointers{})
	for _, row := range rows(t) {
		body := []byte(row.body)
		_, _, _ = r.read(Head{}, body, true)
		require.Equal(t, row.body, string(body), row.name)
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
	assert.Equal(t, project, facts.Project.String())
	assert.Equal(t, "abc", facts.Session.String())
}

// Readers forget: nothing of one body shows in the facts or errors of another.
func TestConcurrentReads(t *testing.T) {
	r := newReader(t, pointers{})
	table := rows(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 0))
			for range 2000 {
				row := table[rng.IntN(len(table))]
				facts, _, err := r.read(Head{}, []byte(row.body), true)
				assert.Equal(t, row.want, describe(facts, err), row.name)
			}
		})
	}
	wg.Wait()
}

func TestTextInJSON(t *testing.T) {
	text, err := json.Marshal(struct{ Project Text }{NewText("12345")})
	require.NoError(t, err)
	assert.JSONEq(t, `{"Project":"12345"}`, string(text))
}
