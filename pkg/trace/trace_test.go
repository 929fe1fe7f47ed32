package trace

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// capture is a job as a sidecar records it.
const capture = `{"offset":3.25,"project":"shop-é","priority":"high","kind":"process","after":null,` +
	`"upstream":"10.0.0.2:80","outcome":"answered","cache":"none","queue_s":0,"wait_s":0.5,"ttfb_s":1.25,"ttlb_s":2,` +
	`"attempts":[{"upstream":"10.0.0.1:80","outcome":"refused","start_s":0,"end_s":0.01},` +
	`{"upstream":"10.0.0.2:80","outcome":"answered","start_s":0.01,"end_s":2}]}` + "\n"

func read(t *testing.T, text string, name string) []Job {
	t.Helper()
	jobs, err := readAll(text, name)
	require.NoError(t, err)
	return jobs
}

func readAll(text string, name string) ([]Job, error) {
	r := NewReader(strings.NewReader(text), name)
	var jobs []Job
	for {
		job, err := r.Next()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return jobs, err
		}
		jobs = append(jobs, job)
	}
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

func TestReaderReadsEveryField(t *testing.T) {
	jobs := read(t, sample, "")
	require.Len(t, jobs, 1)
	assert.Equal(t, Job{
		Offset: 12.5, Project: "12345", Priority: selection.Low, Kind: Process, Version: 3, Shared: "a1", Channel: 7,
		Load: 1.9, SharedRules: 0.4, Operators: 0.8, Output: 0.1, Bytes: 52428800,
		Timeouts: Timeouts{Queue: 240, Evaluate: 1800, Stream: 3600}, Submitter: 17,
	}, jobs[0])
	assert.InDelta(t, 3.2, jobs[0].Work(), 1e-12)

	jobs = read(t, capture, "")
	require.Len(t, jobs, 1)
	assert.Equal(t, Project("shop-é"), jobs[0].Project)
	assert.Equal(t, selection.High, jobs[0].Priority)
	m := jobs[0].Measured
	require.NotNil(t, m)
	assert.Equal(t, "10.0.0.2:80", m.Upstream)
	assert.Equal(t, "none", m.Cache)
	assert.Equal(t, 0.0, *m.Queued)
	assert.Equal(t, 0.5, *m.Wait)
	assert.Equal(t, 1.25, *m.TTFB)
	assert.Equal(t, 2.0, *m.TTLB)
	assert.Equal(t, Attempt{Upstream: "10.0.0.1:80", Outcome: "refused", End: 0.01}, m.Attempts[0])
}

func TestWriterGivesTheSameBytes(t *testing.T) {
	for _, text := range []string{sample, capture, sample + strings.Replace(sample, "null", "1", 1)} {
		assert.Equal(t, text, write(t, read(t, text, "")))
	}
}

func TestReaderToleratesOrderSpaceAndAbsence(t *testing.T) {
	jobs := read(t, `{"priority":"high" , "project":"007","offset":0}`+"\r\n"+`{"offset":0,"project":-3,"after":1}`, "")
	assert.Equal(t, []Job{
		{Project: "007", Priority: selection.High},
		{Project: "-3", After: 1},
	}, jobs)
}

func TestReaderRefuses(t *testing.T) {
	ok := `{"offset":5,"project":1}` + "\n"
	long := strings.Repeat("x", MaxText+1)
	tests := map[string]struct{ text, want string }{
		"empty":          {"", "t.jsonl: the trace is empty: it has no job"},
		"unknown field":  {ok + `{"offset":5,"size":1}`, "t.jsonl: line 2: field size: unknown field"},
		"nested unknown": {`{"offset":5,"timeouts":{"que":1}}`, "t.jsonl: line 1: field timeouts/que: unknown field"},
		"case":           {`{"Offset":5}`, "t.jsonl: line 1: field Offset: unknown field"},
		"twice":          {`{"offset":5,"offset":6}`, "t.jsonl: line 1: field offset: is there twice"},
		"no offset":      {`{"project":5}`, "t.jsonl: line 1: field offset: is missing"},
		"null offset":    {`{"offset":null}`, "t.jsonl: line 1: field offset: is missing"},
		"null line":      {`null`, "t.jsonl: line 1: field offset: is missing"},
		"before zero":    {`{"offset":-0.5}`, "t.jsonl: line 1: field offset: -0.5 is before time zero"},
		"backwards":      {ok + `{"offset":4}`, "t.jsonl: line 2: field offset: 4 goes back in time: the line before has 5"},
		"negative work":  {`{"offset":0,"load_s":-1}`, "t.jsonl: line 1: field load_s: -1 s is negative"},
		"huge work":      {`{"offset":0,"operators_s":1000000001}`, "t.jsonl: line 1: field operators_s: 1.000000001e+09 s is more than 1e+09"},
		"infinite work":  {`{"offset":0,"output_s":1e999}`, "t.jsonl: line 1: field output_s: 1e999 is not a number"},
		"text work":      {`{"offset":0,"shared_s":"1"}`, "t.jsonl: line 1: field shared_s: a JSON string is not a number"},
		"timeout":        {`{"offset":0,"timeouts":{"queue":-2}}`, "t.jsonl: line 1: field timeouts/queue: -2 s is negative"},
		"timeouts":       {`{"offset":0,"timeouts":7}`, "t.jsonl: line 1: field timeouts: a JSON number is not an object"},
		"bytes":          {`{"offset":0,"bytes":-2}`, "t.jsonl: line 1: field bytes: -2 is negative"},
		"part of a byte": {`{"offset":0,"bytes":1.5}`, "t.jsonl: line 1: field bytes: 1.5 is not a whole number of 64 bits"},
		"priority":       {`{"offset":0,"priority":"urgent"}`, `t.jsonl: line 1: field priority: unknown priority "urgent": it is high or low`},
		"priority type":  {`{"offset":0,"priority":1}`, `t.jsonl: line 1: field priority: unknown priority "1": it is high or low`},
		"kind":           {`{"offset":0,"kind":"export"}`, `t.jsonl: line 1: field kind: unknown kind "export": it is process or prefetch`},
		"kind type":      {`{"offset":0,"kind":2}`, `t.jsonl: line 1: field kind: unknown kind "2": it is process or prefetch`},
		"prefetch rules": {`{"offset":0,"kind":"prefetch","operators_s":2}`, `t.jsonl: line 1: field kind: a prefetch has only load_s: it runs no rules`},
		"project":        {`{"offset":0,"project":1.5}`, "t.jsonl: line 1: field project: 1.5 is not an integer: a project is an integer or a string"},
		"negative zero":  {`{"offset":0,"project":-0}`, "t.jsonl: line 1: field project: -0 is not an integer: a project is an integer or a string"},
		"project type":   {`{"offset":0,"project":[1]}`, "t.jsonl: line 1: field project: a project is an integer or a string"},
		"long project":   {`{"offset":0,"project":"` + long + `"}`, "t.jsonl: line 1: field project: a project of 257 bytes is longer than 256"},
		"long shared":    {`{"offset":0,"shared":"` + long + `"}`, "t.jsonl: line 1: field shared: 257 bytes are more than 256"},
		"after itself":   {ok + `{"offset":5,"after":2}`, "t.jsonl: line 2: field after: 2 is not an earlier line"},
		"after later":    {ok + `{"offset":5,"after":9}`, "t.jsonl: line 2: field after: 9 is not an earlier line"},
		"after zero":     {ok + `{"offset":5,"after":0}`, "t.jsonl: line 2: field after: 0 is not the number of a line, counted from 1"},
		"after text":     {ok + `{"offset":5,"after":"1"}`, `t.jsonl: line 2: field after: "1" is not the number of a line, counted from 1`},
		"nested array":   {`{"offset":0,"load_s":[]}`, "t.jsonl: line 1: field load_s: a JSON array is not a number"},
		"nested object":  {`{"offset":0,"bytes":{}}`, "t.jsonl: line 1: field bytes: a JSON object is not a whole number of 64 bits"},
		"attempts":       {`{"offset":0,"attempts":true}`, "t.jsonl: line 1: field attempts: a JSON true is not an array"},
		"array":          {`[1]`, "t.jsonl: line 1: a JSON array is not an object"},
		"blank line":     {ok + "\n" + ok, "t.jsonl: line 2: is empty: every line holds one job"},
		"outcome":        {`{"offset":0,"outcome":"no way"}`, `t.jsonl: line 1: field outcome: "no way" is not a word of lower-case letters and underscores`},
		"long outcome":   {`{"offset":0,"outcome":"` + long[:33] + `"}`, `t.jsonl: line 1: field outcome: "` + long[:33] + `" is not a word of lower-case letters and underscores`},
		"cache":          {`{"offset":0,"cache":"HIT"}`, `t.jsonl: line 1: field cache: "HIT" is not a word of lower-case letters and underscores`},
		"bytes order":    {`{"offset":0,"ttfb_s":2,"ttlb_s":1}`, `t.jsonl: line 1: field ttlb_s: 1 is before ttfb_s, 2: the last byte before the first`},
		"negative wait":  {`{"offset":0,"wait_s":-2}`, `t.jsonl: line 1: field wait_s: -2 s is negative`},
		"attempt end":    {`{"offset":0,"attempts":[{"upstream":"a","outcome":"ok","start_s":2,"end_s":1}]}`, `t.jsonl: line 1: field attempts/0/end_s: 1 is before start_s, 2`},
		"attempt where":  {`{"offset":0,"attempts":[{"outcome":"ok"}]}`, `t.jsonl: line 1: field attempts/0/upstream: 0 bytes are not between 1 and 256`},
		"attempt how":    {`{"offset":0,"attempts":[{"upstream":"a"}]}`, `t.jsonl: line 1: field attempts/0/outcome: "" is not a word of lower-case letters and underscores`},
		"long line":      {ok + `{"offset":5` + strings.Repeat(" ", MaxLine), "t.jsonl: line 2: is longer than 1048576 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readAll(test.text, "t.jsonl")
			assert.EqualError(t, err, test.want)
		})
	}
}

func TestReaderNamesWhereJSONBreaks(t *testing.T) {
	for _, text := range []string{`{"offset":`, `{"offset":1}}`, `{"offset":1} {"offset":2}`, "{\"offset\":1,\"shared\":\"\xff\"}", `{"offset":01}`} {
		_, err := readAll(sample+text, "t.jsonl")
		require.Error(t, err, text)
		assert.Regexp(t, `^t\.jsonl: line 2: .*not JSON at byte \d+: `, err.Error())
	}
}

func TestReaderKeepsItsError(t *testing.T) {
	r := NewReader(strings.NewReader("{}\n"+sample), "")
	_, first := r.Next()
	_, second := r.Next()
	require.Error(t, first)
	assert.Equal(t, first, second)
	assert.Equal(t, int64(1), r.Line())
	assert.EqualError(t, first, "line 1: field offset: is missing")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReaderPassesOnItsSourcesError(t *testing.T) {
	_, err := NewReader(io.MultiReader(strings.NewReader(sample), broken{}), "").Next()
	require.NoError(t, err)
	_, err = NewReader(broken{}, "").Next()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWriterRefuses(t *testing.T) {
	nan := 0.0
	nan /= nan
	for want, job := range map[string]Job{
		"line 1: field offset: -1 is before time zero":                                      {Offset: -1},
		"line 1: field offset: NaN s is more than 1e+09":                                    {Offset: nan},
		"line 1: field after: 1 is not an earlier line":                                     {After: 1},
		"line 1: field after: -1 is not an earlier line":                                    {After: -1},
		"line 1: field outcome: \"No\" is not a word of lower-case letters and underscores": {Measured: &Measured{Outcome: "No"}},
	} {
		assert.EqualError(t, NewWriter(io.Discard).Write(&job), want)
	}
}

// TestRoundTrip writes arbitrary jobs and reads them back unchanged.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	jobs := make([]Job, 500)
	offset := 0.0
	for i := range jobs {
		offset += rng.ExpFloat64()
		jobs[i] = arbitrary(rng, offset, i)
	}
	assert.Equal(t, jobs, read(t, write(t, jobs), ""))
}

func arbitrary(rng *rand.Rand, offset float64, earlier int) Job {
	some := func() float64 {
		if rng.IntN(3) == 0 {
			return 0
		}
		return rng.ExpFloat64()
	}
	time := func() *float64 {
		if rng.IntN(2) == 0 {
			return nil
		}
		v := some()
		return &v
	}
	job := Job{
		Offset: offset, Project: []Project{"", "0", "-0", "-7", "00", "12345678901234567890123", "a\"\n😀"}[rng.IntN(7)],
		Priority: selection.Priority(rng.IntN(2)), Version: rng.Int64N(3), Shared: []string{"", "a1", " "}[rng.IntN(3)],
		Channel: rng.Int64N(3), Load: some(), Bytes: rng.Int64N(3), Submitter: rng.Int64N(3),
		Timeouts: Timeouts{Queue: some(), Stream: some()}, After: Line(rng.IntN(earlier + 1)),
	}
	if rng.IntN(3) == 0 {
		job.Kind = Prefetch
	} else {
		job.SharedRules, job.Operators, job.Output = some(), some(), some()
	}
	if rng.IntN(2) == 0 {
		job.Measured = &Measured{Upstream: "u", Queued: time(), Wait: time()}
		for range rng.IntN(3) {
			job.Measured.Attempts = append(job.Measured.Attempts, Attempt{Upstream: "u", Outcome: "timed_out", End: some()})
		}
	}
	return job
}

// FuzzReader holds that what a Reader accepts, a Writer writes, and a Reader reads as the same jobs.
func FuzzReader(f *testing.F) {
	f.Add(capture + sample)
	f.Add(`{"offset":1,"project":"1"}` + "\n" + `{"offset":1,"project":-0,"after":1}`)
	f.Add(`{"offset":0,"timeouts":{},"attempts":[],"wait_s":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := readAll(text, "")
		if err != nil {
			return
		}
		once := write(t, jobs)
		assert.Equal(t, once, write(t, read(t, once, "")))
	})
}
