package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfiguredFields(t *testing.T) {
	r := newReader(t, Fields{Project: "/meta/a~1b", Queue: "/meta/limits/~0q", Evaluate: "/meta/limits/", Session: "/é"})
	facts, err := r.Read([]byte(`{"project_id":1,"priority":"high","é":"s","meta":{"a/b":2,"limits":{"":4,"~q":3}},"timeouts":{"queue_seconds":9}}`))
	require.NoError(t, err)
	assert.Equal(t, `project="2" priority=high session="s" queue=3s evaluate=4s`, describe(facts, nil))

	_, err = r.Read([]byte(`{"meta":{"a/b":1.5}}`))
	assert.EqualError(t, err, "/meta/a~1b at line 1, column 16 (byte 15) must be an integer or a string, not 1.5")
	_, err = r.Read([]byte(`{"meta":{"limits":3}}`))
	assert.EqualError(t, err, "/meta/limits at line 1, column 19 (byte 18) must be an object, not a number")
}

func TestPointersLeadThroughObjectsOnly(t *testing.T) {
	r := newReader(t, Fields{Project: "/jobs/0"})
	facts, err := r.Read([]byte(`{"jobs":{"0":5}}`))
	require.NoError(t, err)
	assert.Equal(t, "5", facts.Project.String())
	_, err = r.Read([]byte(`{"jobs":[5]}`))
	assert.EqualError(t, err, "/jobs at line 1, column 9 (byte 8) must be an object, not an array")
}

func TestEmptyPointersAreTheDefaults(t *testing.T) {
	body := []byte(`{"project_id":1,"priority":"high","timeouts":{"queue_seconds":1,"evaluate_seconds":2,"stream_seconds":3},"session_id":"s"}`)
	facts, err := newReader(t, Fields{}).Read(body)
	require.NoError(t, err)
	same, err := newReader(t, DefaultFields()).Read(body)
	require.NoError(t, err)
	assert.Equal(t, facts, same)
	assert.Equal(t, 3*time.Second, facts.Stream)
}

func TestRefusedPointers(t *testing.T) {
	for _, c := range []struct {
		fields      Fields
		field, want string
	}{
		{Fields{Project: "project_id"}, "project", `job: JSON Pointer "project_id" of project: it must start with a slash`},
		{Fields{Session: "#/s"}, "session", `job: JSON Pointer "#/s" of session: it must start with a slash`},
		{Fields{Priority: "/a~2"}, "priority", `job: JSON Pointer "/a~2" of priority: it must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name`},
		{Fields{Priority: "/a~"}, "priority", `job: JSON Pointer "/a~" of priority: it must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name`},
		{Fields{Priority: "/\xff"}, "priority", `job: JSON Pointer "/\xff" of priority: it must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name`},
		{Fields{Session: "/project_id"}, "session", `job: JSON Pointer "/project_id" of session: it is already the project`},
		{Fields{Session: "/priority/x"}, "session", `job: JSON Pointer "/priority/x" of session: it leads through "/priority", which is the priority`},
		{Fields{Session: "/timeouts"}, "session", `job: JSON Pointer "/timeouts" of session: other members are within it`},
		{Fields{Project: "/timeouts"}, "queue", `job: JSON Pointer "/timeouts/queue_seconds" of queue: it leads through "/timeouts", which is the project`},
		{Fields{Queue: "/timeouts/stream_seconds"}, "stream", `job: JSON Pointer "/timeouts/stream_seconds" of stream: it is already the queue`},
		{Fields{Queue: "/" + strings.Repeat("x", 256)}, "queue", `job: JSON Pointer "/` + strings.Repeat("x", 256) + `" of queue: it is longer than 256 bytes`},
		{Fields{Evaluate: strings.Repeat("/x", 11)}, "evaluate", `job: JSON Pointer "/x/x/x/x/x/x/x/x/x/x/x" of evaluate: it has more than 10 names`},
	} {
		_, err := NewReader(c.fields)
		require.EqualError(t, err, c.want)
		var pointer *PointerError
		require.ErrorAs(t, err, &pointer)
		assert.Equal(t, c.field, pointer.Field)
	}
}

// The longest pointers that are allowed use every bit of a walk's word at most once.
func TestLargestTree(t *testing.T) {
	at := func(name string) string { return strings.Repeat("/"+name, 10) }
	r := newReader(t, Fields{Project: at("a"), Priority: at("b"), Queue: at("c"), Evaluate: at("d"), Stream: at("e"), Session: at("f")})
	var body strings.Builder
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		value := []string{"1", `"high"`, "2", "3", "4", `"s"`}[i]
		body.WriteString([]string{"{", ","}[min(i, 1)])
		body.WriteString(strings.Repeat(`"`+name+`":{`, 9) + `"` + name + `":` + value + strings.Repeat("}", 9))
	}
	body.WriteString("}")
	facts, err := r.Read([]byte(body.String()))
	require.NoError(t, err)
	assert.Equal(t, `project="1" priority=high session="s" queue=2s evaluate=3s stream=4s`, describe(facts, nil))
}
