package rules

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../example/" + name)
	require.NoError(t, err)
	return data
}

func TestParseJobTakesTheLeast(t *testing.T) {
	job, err := ParseJob([]byte(`{"project_id": "shop_7-b", "show_debug": {"a": [1]}}`))
	require.NoError(t, err)
	assert.Equal(t, Project("shop_7-b"), job.Project)
	assert.Equal(t, Low, job.Priority)
	assert.Zero(t, job.Timeouts)
	assert.Empty(t, job.Shared)
}

// TestParseJobSaysWhatIsWrong: one fault each, with the exact message.
func TestParseJobSaysWhatIsWrong(t *testing.T) {
	condition := func(text string) string {
		return `{"project_id":1,"operators":[{"condition":[` + text + `],"actions":[{"field":"a","action":"remove"}]}]}`
	}
	action := func(text string) string {
		return `{"project_id":1,"shared_operators":[{"actions":[` + text + `]}]}`
	}
	const project = "/project_id: want an integer, or up to 128 letters, digits, '-' and '_', got "
	for body, want := range map[string]string{
		``:                                     "not JSON at byte 0: unexpected EOF",
		`{"project_id": 1`:                     "not JSON at byte 16: unexpected EOF",
		`{"project_id": 1} x`:                  "not JSON at byte 18: invalid character 'x' after top-level value",
		`[]`:                                   "want an object, got [",
		`{}`:                                   "/project_id: missing",
		`{"project_id": 1, "project_id": 2}`:   "/project_id: given twice",
		`{"project_id": 1.5}`:                  project + `"1.5"`,
		`{"project_id": [1]}`:                  project + `"["`,
		`{"project_id": true}`:                 project + `"true"`,
		`{"project_id": "../../etc/passwd"}`:   project + `"../../etc/passwd"`,
		`{"project_id": ""}`:                   project + `""`,
		`{"project_id": 1, "priority": "mid"}`: `/priority: want "high" or "low", got "mid"`,
		`{"project_id": 1, "timeouts": {"queue_seconds": -1}}`:                                    "/timeouts: want 0 to 604800 seconds each",
		`{"project_id": 1, "timeouts": {"stream_seconds": 604801}}`:                               "/timeouts: want 0 to 604800 seconds each",
		`{"project_id": 1, "timeouts": {"stream": 1}}`:                                            "/timeouts/stream: unknown member",
		`{"project_id": 1, "timeouts": {"queue_seconds": "15"}}`:                                  "/timeouts/queue_seconds: want a number, got string",
		`{"project_id": 1, "session_id": 5}`:                                                      "/session_id: want a string, got number",
		`{"project_id": 1, "session_id": "` + strings.Repeat("x", 257) + `"}`:                     "/session_id: longer than 256 bytes",
		`{"project_id": 1, "operators": {}}`:                                                      "/operators: want an array, got {",
		`{"project_id": 1, "operators": [{"action": []}]}`:                                        "/operators/0/action: unknown member",
		`{"project_id": 1, "operators": [` + strings.Repeat("{},", maxOperators) + `{}]}`:         "/operators: a job may have 10000 operators",
		`{"project_id": 1, "cache_result": "no"}`:                                                 "/cache_result: want a bool, got string",
		`{"project_id": 1, "presentation": {"sort_by": [{"descending": true}]}}`:                  "/presentation/sort_by/0/field: missing",
		`{"project_id": 1, "presentation": {"sort": []}}`:                                         "/presentation/sort: unknown member",
		`{"project_id": 1, "presentation": {"omit": [1]}}`:                                        "/presentation/omit/0: want a string, got number",
		`{"project_id": 1, "presentation": {"sort_by": ["` + strings.Repeat(`a","`, 16) + `a"]}}`: "/presentation/sort_by: a result is sorted by 16 fields at most",

		condition(`{"filter": "is_empty"}`):                                                   "/operators/0/condition/0/field: missing",
		condition(`{"field": "a", "filter": "is_empty", "value": 1}`):                         "/operators/0/condition/0/value: is_empty takes 0 values, got 1",
		condition(`{"field": "a", "filter": "is_equal"}`):                                     "/operators/0/condition/0/value: is_equal takes 1 values, got 0",
		condition(`{"field": "a", "filter": "is_equal", "value": null}`):                      "/operators/0/condition/0/value: want a string, number or boolean, got null",
		condition(`{"field": "a", "filter": "is_equal", "value": {"type": "x", "value": 1}}`): `/operators/0/condition/0/value/type: want "static" or "field", got "x"`,
		condition(`{"field": "a", "filter": "is_equal", "value": {"type": "field"}}`):         "/operators/0/condition/0/value/value: want the name of a field",
		condition(`{"field": "a", "filter": "is_equal", "value": {"typ": "field"}}`):          "/operators/0/condition/0/value/typ: unknown member",
		condition(`{"field": "a", "filter": "is_empty", "children": [{"field": "a", "filter": "is_odd"}]}`): `/operators/0/condition/0/children/0/filter: unknown filter "is_odd"; known are contains, ` +
			`does_not_contain, is_empty, is_equal, is_greater_equal, is_greater_than, is_less_equal, is_less_than, is_not_empty, is_not_equal`,

		action(`{"action": "set", "value": 1}`):                               "/shared_operators/0/actions/0/field: missing",
		action(`{"field": "a", "action": "set"}`):                             "/shared_operators/0/actions/0/value: set takes 1 values, got 0",
		action(`{"field": "all", "action": "set", "value": 1}`):               `/shared_operators/0/actions/0/action: only remove acts on the field "all"`,
		action(`{"field": "all", "action": "remove", "value": 1}`):            "/shared_operators/0/actions/0/value: remove takes 0 values, got 1",
		action(`{"field": "a", "action": "combine", "value": []}`):            "/shared_operators/0/actions/0/value: combine takes 1 values, got 0",
		action(`{"field": "a", "action": "combine", "value": ["b", [1]]}`):    "/shared_operators/0/actions/0/value/1: want a string, number or boolean, got [",
		action(`{"field": "a", "action": "texttransform"}`):                   "/shared_operators/0/actions/0/value: texttransform takes 1 values, got 0",
		action(`{"field": "a", "action": "texttransform", "value": "rot13"}`): `/shared_operators/0/actions/0/value: unknown transform "rot13"; known are capitalize, lowercase, uppercase`,
		action(`{"field": "a", "action": "explode"}`):                         `/shared_operators/0/actions/0/action: unknown action "explode"; known are combine, remove, set, texttransform`,
	} {
		_, err := ParseJob([]byte(body))
		if assert.ErrorAs(t, err, new(*Malformed), "%.100s", body) {
			assert.EqualError(t, err, want, "%.100s", body)
		}
	}
}

// TestDigest: equal lists of operators have equal digests in any notation, and different lists
// have different ones.
func TestDigest(t *testing.T) {
	digest := func(operators string) string {
		job, err := ParseJob([]byte(`{"project_id":1,"shared_operators":` + operators + `}`))
		require.NoError(t, err, operators)
		return job.Shared.Digest()
	}
	base := digest(`[{"actions":[{"field":"a","action":"set","value":{"type":"static","value":0.10}}]}]`)
	assert.Equal(t, base, digest(`[ {"actions" : [{"action":"set","field":"a","value":{"value":"0.10","type":"static"}}]} ]`))
	assert.Equal(t, base, digest(`[{"actions":[{"field":"a","action":"set","value":[0.10]}]}]`))
	for _, other := range []string{
		`[{"actions":[{"field":"a","action":"set","value":0.1}]}]`,
		`[{"actions":[{"field":"a","action":"set","value":{"type":"field","value":"0.10"}}]}]`,
		`[{"else_actions":[{"field":"a","action":"set","value":0.10}]}]`,
		`[]`,
	} {
		assert.NotEqual(t, base, digest(other), other)
	}
}

func FuzzParseJob(f *testing.F) {
	f.Add(readFile(f, "job.json"))
	f.Add([]byte(`{"project_id":1,"operators":[{"actions":[{"field":"title","action":"combine","value":[{"type":"field","value":"title"},"x"]}]}]}`))
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
		require.True(t, job.Project.Valid())
		again, err := ParseJob(append(body, ' ', '\n'))
		require.NoError(t, err)
		require.Equal(t, job.Shared.Digest(), again.Shared.Digest())

		const limit = 1 << 20
		out, _, err := Apply(feed, append(job.Shared, job.Channel...), Presentation{}, limit)
		if err != nil {
			require.ErrorAs(t, err, new(*TooLarge))
			return
		}
		require.LessOrEqual(t, out.Bytes(), int64(limit))
		for _, line := range bytes.Split(bytes.TrimSuffix(out.Encode(NDJSON), []byte("\n")), []byte("\n")) {
			require.True(t, len(line) == 0 || jsontext.Value(line).IsValid(), "%q", line)
		}
	})
}
