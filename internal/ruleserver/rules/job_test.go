package rules

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testdata = "../example/"

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(testdata + name)
	require.NoError(t, err)
	return data
}

// TestThesisExample: listing 1 makes table 2 of table 1.
func TestThesisExample(t *testing.T) {
	job, err := ParseJob(readFile(t, "job.json"))
	require.NoError(t, err)
	assert.Equal(t, "5531f48d-74f0-4b52-8203-470d5ed8aa90", job.Session)
	assert.Equal(t, "12345", job.Project)
	assert.Equal(t, High, job.Priority)
	assert.Equal(t, Timeouts{Queue: 15 * time.Second, Evaluate: 2 * time.Minute, Stream: 5 * time.Minute}, job.Timeouts)

	feed, err := ParseFeed(readFile(t, "feeds/12345.csv"))
	require.NoError(t, err)
	feed, err = Apply(feed, job.Shared, 1<<20)
	require.NoError(t, err)
	feed, err = Apply(feed, job.Channel, 1<<20)
	require.NoError(t, err)

	assert.Equal(t, string(readFile(t, "answer.csv")), string(bytes.Join(feed.Encode(CSV), nil)))
	assert.Equal(t, []string{
		`{"id":"3","title":"T-shirt “Triangle” Blue","color":"Blue","stock":"34","availability":"in stock","price":"15.00"}`,
		`{"id":"4","title":"T-shirt “Triangle” Red","color":"Red","stock":"0","availability":"out of stock","price":"15.00"}`,
		`{"id":"5","title":"T-shirt “Hexagon”","color":"","stock":"78","availability":"in stock","price":"18.00"}`,
		``,
	}, strings.Split(string(bytes.Join(feed.Encode(NDJSON), nil)), "\n"))
}

func TestParseJobTakesTheLeast(t *testing.T) {
	job, err := ParseJob([]byte(`{"project_id": "shop_7-b", "show_debug": {"a": [1]}}`))
	require.NoError(t, err)
	assert.Equal(t, "shop_7-b", job.Project)
	assert.Equal(t, Low, job.Priority)
	assert.Zero(t, job.Timeouts)
	assert.Empty(t, job.Shared.list)
}

// TestParseJobSaysWhatIsWrong: one fault each, and the exact message.
func TestParseJobSaysWhatIsWrong(t *testing.T) {
	condition := func(text string) string {
		return `{"project_id":1,"operators":[{"condition":[` + text + `],"actions":[{"field":"a","action":"clear"}]}]}`
	}
	action := func(text string) string {
		return `{"project_id":1,"shared_operators":[{"actions":[` + text + `]}]}`
	}
	for body, want := range map[string]string{
		``:                                     "not JSON at byte 0: unexpected EOF",
		`{"project_id": 1`:                     "not JSON at byte 16: unexpected EOF",
		`{"project_id": 1} x`:                  "not JSON at byte 18: invalid character 'x' after top-level value",
		`[]`:                                   "want an object, got an array",
		`{}`:                                   "/project_id: missing",
		`{"project_id": 1, "project_id": 2}`:   "/project_id: given twice",
		`{"project_id": 1.5}`:                  "/project_id: want an integer of at most 64 bits, got 1.5",
		`{"project_id": [1]}`:                  "/project_id: want an integer or a string, got an array",
		`{"project_id": "../../etc/passwd"}`:   `/project_id: want an integer, or up to 128 letters, digits, '-' and '_', got "../../etc/passwd"`,
		`{"project_id": ""}`:                   `/project_id: want an integer, or up to 128 letters, digits, '-' and '_', got ""`,
		`{"project_id": 1, "priority": "mid"}`: `/priority: want "high" or "low", got "mid"`,
		`{"project_id": 1, "timeouts": {"queue_seconds": 1e-12}}`:  "/timeouts/queue_seconds: want more than 0 and at most 604800 seconds, got 1e-12",
		`{"project_id": 1, "timeouts": {"queue_seconds": -1}}`:     "/timeouts/queue_seconds: want more than 0 and at most 604800 seconds, got -1",
		`{"project_id": 1, "timeouts": {"stream_seconds": 1e300}}`: "/timeouts/stream_seconds: want more than 0 and at most 604800 seconds, got 1e+300",
		`{"project_id": 1, "timeouts": {"stream": 1}}`:             "/timeouts/stream: unknown member",
		`{"project_id": 1, "timeouts": {"queue_seconds": "15"}}`:   "/timeouts/queue_seconds: want a number, got a string",
		`{"project_id": 1, "session_id": 5}`:                       "/session_id: want a string, got a number",
		`{"project_id": 1, "operators": {}}`:                       "/operators: want an array, got an object",
		`{"project_id": 1, "operators": [{"name": "idle"}]}`:       "/operators/0/actions: missing",
		`{"project_id": 1, "operators": [{"action": []}]}`:         "/operators/0/action: unknown member",

		condition(`{"filter": "is_empty"}`):                                                        "/operators/0/condition/0/field: missing",
		condition(`{"field": "a"}`):                                                                "/operators/0/condition/0/filter: missing",
		condition(`{"field": "a", "filter": "is_empty", "value": 1}`):                              "/operators/0/condition/0/value: is_empty takes no value",
		condition(`{"field": "a", "filter": "is_equal"}`):                                          "/operators/0/condition/0/value: missing",
		condition(`{"field": "a", "filter": "is_equal", "value": [1]}`):                            "/operators/0/condition/0/value: want a string, number or boolean, got an array",
		condition(`{"field": "a", "filter": "is_equal", "value": {"type": "x", "value": 1}}`):      `/operators/0/condition/0/value/type: want "static" or "field", got "x"`,
		condition(`{"field": "a", "filter": "is_equal", "value": {"type": "field", "value": 1}}`):  "/operators/0/condition/0/value/value: want the name of a field",
		condition(`{"field": "a", "filter": "is_equal", "value": {"typ": "field"}}`):               "/operators/0/condition/0/value/typ: unknown member",
		condition(`{"field": "a", "filter": "matches", "value": "("}`):                             "/operators/0/condition/0/value: not an RE2 pattern: error parsing regexp: missing closing ): `(`",
		condition(`{"field": "a", "filter": "matches", "value": {"type": "field", "value": "b"}}`): "/operators/0/condition/0/value: matches takes a static pattern",
		condition(`{"field": "a", "filter": "is_empty", "children": [{"field": "a", "filter": "is_odd"}]}`): `/operators/0/condition/0/children/0/filter: unknown filter "is_odd"; known are contains, ` +
			`does_not_contain, does_not_end_with, does_not_match, does_not_start_with, ends_with, is_empty, is_equal, is_greater_equal, is_greater_than, ` +
			`is_less_equal, is_less_than, is_not_empty, is_not_equal, matches, starts_with`,

		action(`{"action": "set", "value": 1}`):                               "/shared_operators/0/actions/0/field: missing",
		action(`{"field": "a"}`):                                              "/shared_operators/0/actions/0/action: missing",
		action(`{"field": "a", "action": "set"}`):                             "/shared_operators/0/actions/0/value: missing",
		action(`{"field": "a", "action": "set", "value": null}`):              "/shared_operators/0/actions/0/value: want a string, number or boolean, got null",
		action(`{"field": "all", "action": "set", "value": 1}`):               `/shared_operators/0/actions/0/action: only remove acts on the field "all"`,
		action(`{"field": "all", "action": "remove", "value": 1}`):            "/shared_operators/0/actions/0/value: remove takes no value",
		action(`{"field": "a", "action": "combine", "value": "b"}`):           "/shared_operators/0/actions/0/value: want an array of values, got a string",
		action(`{"field": "a", "action": "combine", "value": []}`):            "/shared_operators/0/actions/0/value: want at least one value",
		action(`{"field": "a", "action": "combine", "value": ["b", {}]}`):     "/shared_operators/0/actions/0/value/1/value: missing",
		action(`{"field": "a", "action": "copy", "value": ""}`):               "/shared_operators/0/actions/0/value: want the name of a field",
		action(`{"field": "a", "action": "replace", "value": "b"}`):           "/shared_operators/0/actions/0/search: missing",
		action(`{"field": "a", "action": "set", "value": 1, "search": "b"}`):  "/shared_operators/0/actions/0/search: only replace searches",
		action(`{"field": "a", "action": "texttransform", "value": "rot13"}`): `/shared_operators/0/actions/0/value: unknown transform "rot13"; known are capitalize, lowercase, trim, uppercase`,
		action(`{"field": "a", "action": "explode"}`):                         `/shared_operators/0/actions/0/action: unknown action "explode"; known are append, clear, combine, copy, prepend, remove, replace, set, texttransform`,
	} {
		_, err := ParseJob([]byte(body))
		if assert.ErrorAs(t, err, new(*Malformed), body) {
			assert.EqualError(t, err, want, body)
		}
	}
}

func TestParseJobBounds(t *testing.T) {
	nested := func(depth int) string {
		const open = `{"field":"a","filter":"is_empty","children":[`
		return fmt.Sprintf(`{"project_id":1,"operators":[{"condition":[%s%s],"actions":[{"field":"a","action":"clear"}]}]}`,
			strings.Repeat(open, depth), strings.Repeat("]}", depth))
	}
	_, err := ParseJob([]byte(nested(maxDepth)))
	require.NoError(t, err)
	_, err = ParseJob([]byte(nested(maxDepth + 1)))
	require.ErrorContains(t, err, "conditions nested deeper than 100")

	actions := func(n int) string {
		return `{"project_id":1,"operators":[{"actions":[` +
			strings.TrimSuffix(strings.Repeat(`{"field":"a","action":"clear"},`, n), ",") + `]}]}`
	}
	_, err = ParseJob([]byte(actions(maxActions)))
	require.NoError(t, err)
	_, err = ParseJob([]byte(actions(maxActions + 1)))
	assert.EqualError(t, err, "100001 actions, and a job may have 100000")
}

// TestDigest: equal lists of operators share their digest however they are
// written, and different ones do not.
func TestDigest(t *testing.T) {
	digest := func(operators string) string {
		job, err := ParseJob([]byte(`{"project_id":1,"shared_operators":` + operators + `}`))
		require.NoError(t, err, operators)
		return job.Shared.Digest
	}
	base := digest(`[{"actions":[{"field":"a","action":"set","value":{"type":"static","value":0.10}}]}]`)
	assert.Equal(t, base, digest(`[ {"actions" : [{"action":"set","field":"a","value":{"value":0.10,"type":"static"}}]} ]`))
	for _, other := range []string{
		`[{"actions":[{"field":"a","action":"set","value":{"type":"static","value":0.1}}]}]`,
		`[{"actions":[{"field":"a","action":"set","value":{"type":"static","value":"0.10"}}]}]`,
		`[{"else_actions":[{"field":"a","action":"set","value":{"type":"static","value":0.10}}]}]`,
		`[]`,
	} {
		assert.NotEqual(t, base, digest(other), other)
	}
	long := func(number string) string {
		return digest(`[{"actions":[{"field":"a","action":"set","value":` + number + `}]}]`)
	}
	assert.NotEqual(t, long("9007199254740992"), long("9007199254740993"), "a feed keeps every digit")
}

func FuzzParseJob(f *testing.F) {
	f.Add(readFile(f, "job.json"))
	f.Add([]byte(`{"project_id":1,"operators":[{"actions":[{"field":"t","action":"append","value":{"type":"field","value":"t"}}]}]}`))
	feed, err := ParseFeed(readFile(f, "feeds/12345.csv"))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		job, err := ParseJob(body)
		if err != nil {
			var m *Malformed
			require.ErrorAs(t, err, &m)
			require.True(t, m.Path.IsValid(), "%q", m.Path)
			return
		}
		require.True(t, ValidProject(job.Project))
		again, err := ParseJob(append(body, ' ', '\n'))
		require.NoError(t, err)
		require.Equal(t, job.Shared.Digest, again.Shared.Digest)

		const limit = 1 << 20
		out, err := Apply(feed, Operators{list: append(job.Shared.list, job.Channel.list...)}, limit)
		if err != nil {
			require.ErrorAs(t, err, new(*TooLarge))
			return
		}
		require.LessOrEqual(t, out.Bytes(), int64(limit))
		for _, line := range bytes.Split(bytes.TrimSuffix(bytes.Join(out.Encode(NDJSON), nil), []byte("\n")), []byte("\n")) {
			require.True(t, len(line) == 0 || jsontext.Value(line).IsValid(), "%q", line)
		}
	})
}
