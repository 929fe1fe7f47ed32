package intake

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

func TestConfiguredFields(t *testing.T) {
	r := newReader(t, pointers{
		Project: "/meta/a~1b", Queue: "/meta/limits/~0q", Evaluate: "/meta/limits/", Session: "/é/0",
	})
	facts, _, err := r.read(Head{}, []byte(`{"project_id":1,"priority":"high","é":{"0":"s"},`+
		`"meta":{"a/b":2,"limits":{"":4,"~q":3}},"timeouts":{"queue_seconds":9}}`), true)
	require.NoError(t, err)
	assert.Equal(t, `project="2" priority=high session="s" queue=3s evaluate=4s`, describe(facts, nil))

	_, _, err = r.read(Head{}, []byte(`{"meta":{"a/b":1.5}}`), true)
	assert.EqualError(t, err, "/meta/a~1b at byte 15 must be an integer or a string, not 1.5")
	_, _, err = r.read(Head{}, []byte(`{"meta":{"limits":3}}`), true)
	assert.EqualError(t, err, "/meta/limits at byte 18 must be an object, not a number")
	_, _, err = r.read(Head{}, []byte(`{"meta":["s"]}`), true)
	assert.EqualError(t, err, "/meta at byte 8 must be an object, not an array")
}

func TestRefusedSettings(t *testing.T) {
	for want, p := range map[string]pointers{
		`project: "project_id" is not a JSON Pointer such as /project_id, nor a section such as {header: x-project}`: {Project: "project_id"},
		`session: "#/s" is not a JSON Pointer such as /project_id, nor a section such as {header: x-project}`:        {Session: "#/s"},
		`priority: "/a~2" must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name`:                 {Priority: "/a~2"},
		`priority: "/a~" must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name`:                  {Priority: "/a~"},
		`priority: "/\xff" must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name`:                {Priority: "/\xff"},
		`session: "/project_id" is already the project`:                                                              {Session: "/project_id"},
		`session: "/priority/x" leads through "/priority", which is the priority`:                                    {Session: "/priority/x"},
		`session: "/timeouts" contains another member`:                                                               {Session: "/timeouts"},
		`stream_timeout: "/timeouts/stream_seconds" is already the queue_timeout`:                                    {Queue: "/timeouts/stream_seconds"},
		`queue_timeout: "/` + strings.Repeat("x", 256) + `" is longer than 256 bytes`:                                {Queue: "/" + strings.Repeat("x", 256)},
		`first_byte_timeout: "/x/x/x/x/x/x/x/x/x/x/x" has more than 10 names`:                                        {Evaluate: strings.Repeat("/x", 11)},
		`queue_timeout: "/timeouts/queue_seconds" leads through "/timeouts", which is the project` + "\n" +
			`first_byte_timeout: "/timeouts/evaluate_seconds" leads through "/timeouts", which is the project` + "\n" +
			`stream_timeout: "/timeouts/stream_seconds" leads through "/timeouts", which is the project`: {Project: "/timeouts"},
	} {
		s := overDefault(p)
		_, err := NewReader(s)
		require.EqualError(t, err, "intake: "+want)
		var f settings.Faults
		s.Check(&f)
		require.EqualError(t, f.Err(), want)
	}
	var f settings.Faults
	Default().Check(&f)
	require.Empty(t, f.All())
	_, err := NewReader(Settings{})
	require.ErrorContains(t, err, `project: "" is not a JSON Pointer such as /project_id, nor a section such as {header: x-project}`)
}

func TestTheExpectedHeaderIsFree(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "job-expected": "", "X Y": `expected_header: "X Y" is not a valid header name`,
		"content-length":    `expected_header: "Content-Length" is reserved for HTTP or pilotfish`,
		"Transfer-encoding": `expected_header: "Transfer-Encoding" is reserved for HTTP or pilotfish`,
		"TE":                `expected_header: "Te" is reserved for HTTP or pilotfish`,
		"host":              `expected_header: "Host" is reserved for HTTP or pilotfish`,
	} {
		s := Default()
		s.ExpectedHeader = name
		var f settings.Faults
		s.Check(&f)
		if want == "" {
			require.NoError(t, f.Err())
			continue
		}
		require.EqualError(t, f.Err(), want)
	}
}

func TestSizesAreChecked(t *testing.T) {
	s := Default()
	s.MaxBody, s.Budget = 0, -1
	var f settings.Faults
	s.Check(&f)
	require.EqualError(t, f.Err(), "max_body: 0 must be at least 1\nbudget: -1 must be at least 1MiB")
	f = settings.Faults{}
	s.MaxBody, s.Budget = math.MaxInt64, math.MaxInt64
	s.Check(&f)
	require.EqualError(t, f.Err(), "max_body: 9223372036854775807 is more than 1024GiB\nbudget: 9223372036854775807 is more than 1024GiB")
	f = settings.Faults{}
	s.MaxBody, s.Budget = 64<<20, 1<<20
	s.Check(&f)
	require.NoError(t, f.Err())
	require.Len(t, f.All(), 1)
	require.EqualError(t, f.All()[0], "budget: 1MiB is less than job.max_body, 64MiB: a job with a larger body than 1MiB is never retried")
}

// A walk has room for as many members as there may be, by the longest pointers.
func TestLargestTree(t *testing.T) {
	at := func(name string) Place { return Place{Pointer: strings.Repeat("/"+name, 10)} }
	r, err := NewReader(Settings{
		Project: Places{at("a"), at("g"), at("h"), at("i")}, Bytes: at("j"),
		Priority: at("b"), QueueTimeout: at("c"), FirstByteTimeout: at("d"), StreamTimeout: at("e"), Session: at("f"), Prefetch: at("k"),
		LengthKey: Places{at("l"), at("m"), at("n"), at("o")},
	})
	require.NoError(t, err)
	var body strings.Builder
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"} {
		value := []string{"1", `"high"`, "2", "3", "4", `"s"`, "7", "8", "9", "10", "true", "1", "2", "3", "4"}[i]
		body.WriteString([]string{"{", ","}[min(i, 1)])
		body.WriteString(strings.Repeat(`"`+name+`":{`, 9) + `"` + name + `":` + value + strings.Repeat("}", 9))
	}
	body.WriteString("}")
	facts, _, err := r.read(Head{}, []byte(body.String()), true)
	require.NoError(t, err)
	assert.Equal(t, `project="1/7/8/9" priority=high prefetch session="s" bytes=10 queue=2s evaluate=3s stream=4s`, describe(facts, nil))
	assert.NotZero(t, facts.LengthKey)
}
