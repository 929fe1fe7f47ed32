package trace

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

const sample = `{"offset":12.5,"project":"12345","priority":"low","kind":"prefetch","version":3,"shared":"a1","channel":7,"load_s":1.9,"bytes":52428800,` +
	`"timeouts":{"queue":240,"evaluate":1800,"stream":3600},"submitter":17}` + "\n" +
	`{"offset":12.5,"project":"shop-é","priority":"high","shared_s":0.4,"operators_s":0.8,"output_s":0.1,"after":1}` + "\n"

func readAll(text string) (jobs []Job, err error) {
	err = Each(NewReader(strings.NewReader(text), "t.jsonl"), func(j *Job) error {
		jobs = append(jobs, *j)
		return nil
	})
	return jobs, err
}

func write(t *testing.T, jobs []Job) string {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	for i := range jobs {
		require.NoError(t, w.Write(&jobs[i]))
	}
	require.NoError(t, w.Flush())
	return out.String()
}

func TestEveryFieldIsReadAndWritten(t *testing.T) {
	jobs, err := readAll(sample)
	require.NoError(t, err)
	assert.Equal(t, []Job{
		{
			Offset: 12.5, Project: "12345", Priority: selection.Low, Kind: Prefetch, Version: 3, Shared: "a1", Channel: 7, Load: 1.9, Bytes: 52428800,
			Timeouts: Timeouts{Queue: 240, Evaluate: 1800, Stream: 3600}, Submitter: 17,
		},
		{Offset: 12.5, Project: "shop-é", Priority: selection.High, SharedRules: 0.4, Operators: 0.8, Output: 0.1, After: 1},
	}, jobs)
	assert.InDelta(t, 1.3, jobs[1].Work(), 1e-12)
	assert.Equal(t, sample, write(t, jobs))
}

func TestReaderToleratesOrderSpaceAndAbsence(t *testing.T) {
	jobs, err := readAll(`{"priority":"high" , "project":"007","offset":0}` + "\r\n" + `{"offset":0,"project":-3,"after":1}` + "\n" + `{"offset":0,"project":null,"after":null}`)
	require.NoError(t, err)
	assert.Equal(t, []Job{{Project: "007", Priority: selection.High}, {Project: "-3", After: 1}, {}}, jobs)
}

func TestReaderRefuses(t *testing.T) {
	ok := `{"offset":5,"project":1}` + "\n"
	long := strings.Repeat("x", MaxText+1)
	for text, want := range map[string]string{
		"":                                                "the trace is empty: it has no job",
		ok + `{"offset":5,"size":1}`:                      "line 2: field size: unknown field",
		`{"offset":5,"timeouts":{"q":1}}`:                 "line 1: field timeouts/q: unknown field",
		`{"offset":5,"offset":6}`:                         `line 1: field offset: not JSON at byte 12: duplicate object member name`,
		`{"project":5}`:                                   "line 1: field offset: is missing",
		`null`:                                            "line 1: is not a JSON object: every line holds one job",
		`{"offset":-0.5}`:                                 "line 1: field offset: -0.5 is not between 0 and 1e+09",
		ok + `{"offset":4}`:                               "line 2: field offset: 4 goes back in time: the line before has 5",
		`{"offset":0,"operators_s":1000000001}`:           "line 1: field operators_s: 1.000000001e+09 is not between 0 and 1e+09",
		`{"offset":0,"output_s":1e999}`:                   "line 1: field output_s: 1e999: value out of range",
		`{"offset":0,"shared_s":"1"}`:                     "line 1: field shared_s: a JSON string makes no sense here",
		`{"offset":0,"load_s":[]}`:                        "line 1: field load_s: a JSON array makes no sense here",
		`{"offset":0,"timeouts":7}`:                       "line 1: field timeouts: a JSON number makes no sense here",
		`{"offset":0,"bytes":-2}`:                         "line 1: field bytes: -2 is not between 0 and 9.223372036854776e+18",
		`{"offset":0,"bytes":1.5}`:                        "line 1: field bytes: 1.5: invalid syntax",
		`{"offset":0,"priority":"urgent"}`:                `line 1: field priority: unknown priority "urgent": it is high or low`,
		`{"offset":0,"kind":"export"}`:                    `line 1: field kind: unknown kind "export": it is process or prefetch`,
		`{"offset":0,"kind":"prefetch","operators_s":2}`:  "line 1: field kind: a prefetch has only load_s: it runs no rules",
		`{"offset":0,"project":1.5}`:                      "line 1: field project: 1.5 is not an integer: a project is an integer or a string",
		`{"offset":0,"project":[1]}`:                      "line 1: field project: a project is an integer or a string",
		`{"offset":0,"project":"` + long + `"}`:           "line 1: field project: a project of 257 bytes is longer than 256",
		`{"offset":0,"shared":"` + long + `"}`:            "line 1: field shared: 257 bytes are more than 256",
		ok + `{"offset":5,"after":2}`:                     "line 2: field after: 2 is not an earlier line",
		ok + `{"offset":5,"after":-1}`:                    "line 2: field after: -1 is not between 0 and 9.223372036854776e+18",
		`[1]`:                                             "line 1: is not a JSON object: every line holds one job",
		ok + "\n" + ok:                                    "line 2: is not a JSON object: every line holds one job",
		ok + `{"offset":5` + strings.Repeat(" ", MaxLine): "line 2: is longer than 1048576 bytes",
		ok + `{"offset":`:                                 "line 2: field offset: not JSON at byte 10: unexpected EOF",
		ok + `{"offset":1}}`:                              "line 2: not JSON at byte 12: invalid character '}' after top-level value",
		ok + `{"shared":"` + "\xff":                       "line 2: field shared: not JSON at byte 11: invalid UTF-8",
	} {
		_, err := readAll(text)
		assert.ErrorContains(t, err, "t.jsonl: "+want, "%.100s", text)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReaderPassesOnItsSourcesError(t *testing.T) {
	_, err := NewReader(broken{}, "").Next()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWriterRefuses(t *testing.T) {
	assert.EqualError(t, NewWriter(io.Discard).Write(&Job{Offset: -1}), "field offset: -1 is not between 0 and 1e+09")
	assert.EqualError(t, NewWriter(io.Discard).Write(&Job{Load: math.Inf(1)}), "field load_s: +Inf is not between 0 and 1e+09")
}

// Arbitrary jobs are read back as they were written.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	jobs := make([]Job, 500)
	offset := 0.0
	some := func() float64 { return float64(rng.IntN(3)/2) * rng.ExpFloat64() }
	for i := range jobs {
		offset += some()
		jobs[i] = Job{
			Offset: offset, Project: []Project{"", "0", "-0", "-7", "00", "12345678901234567890123", "a\"\n😀"}[rng.IntN(7)],
			Priority: selection.Priority(rng.IntN(2)), Version: rng.Int64N(3), Shared: []string{"", "a1", " "}[rng.IntN(3)],
			Channel: rng.Int64N(3), Load: some(), Bytes: rng.Int64N(3), Submitter: rng.Int64N(3),
			Timeouts: Timeouts{Queue: some(), Stream: some()}, After: Line(rng.IntN(i + 1)),
		}
		if jobs[i].Kind = Kind(rng.IntN(2)); jobs[i].Kind == Process {
			jobs[i].SharedRules, jobs[i].Operators, jobs[i].Output = some(), some(), some()
		}
	}
	again, err := readAll(write(t, jobs))
	require.NoError(t, err)
	assert.Equal(t, jobs, again)
}

// FuzzReader holds that what a Reader accepts, a Writer writes, and a Reader reads as the same jobs.
func FuzzReader(f *testing.F) {
	f.Add(sample)
	f.Add(`{"offset":1,"project":"1"}` + "\n" + `{"offset":1,"project":-0,"after":1}`)
	f.Add(`{"offset":0,"timeouts":{},"load_s":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := readAll(text)
		if err != nil {
			return
		}
		again, err := readAll(write(t, jobs))
		require.NoError(t, err)
		assert.Equal(t, jobs, again)
	})
}
