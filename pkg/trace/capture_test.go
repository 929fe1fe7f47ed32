package trace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadCapture(t *testing.T) {
	const file = `{"offset":12,"project":2,"outcome":"answered","ttfb_s":1,"ttlb_s":1}
{"offset":10,"project":1,"outcome":"answered","ttfb_s":4,"ttlb_s":5}
{"offset":15.5,"project":1,"outcome":"shed","after":2}
{"offset":14,"project":3,"outcome":"answered","after":1}
`
	jobs, err := ReadCapture(strings.NewReader(file+`{"offset":16,"proj`), "capture.jsonl")
	require.NoError(t, err)
	type short struct {
		offset  float64
		project Project
		after   Line
	}
	var got []short
	for _, j := range jobs {
		got = append(got, short{j.Offset, j.Project, j.After})
		assert.NotNil(t, j.Measured)
	}
	assert.Equal(t, []short{{0, "1", 0}, {2, "2", 0}, {4, "3", 2}, {5.5, "1", 1}}, got)

	jobs, err = ReadCapture(strings.NewReader(file+`{"offset":16}`), "")
	require.NoError(t, err)
	assert.Len(t, jobs, 5, "a last line without an end of line is whole here")
	jobs, err = ReadCapture(strings.NewReader(`{"offset":3}`+"\n"+`{"offset":2,"after":1}`+"\n"), "")
	require.NoError(t, err)
	assert.Equal(t, []Line{0, 0}, []Line{jobs[0].After, jobs[1].After}, "a job that came before another did not wait for it")
}

func TestReadCaptureRefuses(t *testing.T) {
	for file, want := range map[string]string{
		"":                        "c.jsonl: the trace is empty: it has no job",
		`{"offset":`:              "c.jsonl: line 1: field offset: not JSON at byte 10: unexpected EOF",
		`{"offset":1` + "\n{}\n":  "c.jsonl: line 1: not JSON at byte 11: unexpected EOF",
		`{"offset":1}` + "\n\n{}": "c.jsonl: line 2: is empty: every line holds one job",
	} {
		_, err := ReadCapture(strings.NewReader(file), "c.jsonl")
		assert.EqualError(t, err, want, file)
	}
}
