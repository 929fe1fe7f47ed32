package figures

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A burst: the first jobs start at once, later ones wait longer, and the last get no response.
func TestModes(t *testing.T) {
	var j Jobs
	for i := range 400 {
		switch {
		case i < 100:
			j.Add(float64(i), 2, 3, 1)
		case i < 300:
			j.Add(float64(i), 2+0.5*float64(i-100), 200, 1)
		default:
			j.Add(float64(i), -1, -1, 0)
		}
	}
	j.Sort()
	j.describe()
	assert.InDelta(t, 0.38, j.Slope, 0.02)
	assert.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, j.Modes[:10])
	assert.Equal(t, []int{2, 2, 2, 2}, j.Modes[11:15])
	assert.Equal(t, []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, j.Modes[30:])
}

func TestJobsAreSortedAndBounded(t *testing.T) {
	var j Jobs
	for i := range MaxJobs + 5 {
		j.Add(float64(-i), float64(i), 0, 1)
	}
	j.Sort()
	assert.Len(t, j.At, MaxJobs)
	assert.Equal(t, float64(MaxJobs+4), j.First[0], "the latest one came first")
}

// Names are escaped in the page.
func TestThePageEscapesNames(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, (&Page{Title: "</script><b>", Runs: []Run{{Name: "</script><b>"}}}).WriteHTML(&out))
	assert.NotContains(t, out.String(), "<b>")
	assert.NotRegexp(t, `(?:src|href)=`, out.String(), "it needs no other file")
}
