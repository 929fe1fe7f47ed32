package trace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job waits for the one before it of its session, if that had ended when it came.
func TestJobsOfASessionWait(t *testing.T) {
	logs, err := ReadLogs(100, nil, file(t, "time,id,session,duration,priority\n0.5,a,s,1,high\n1.5,b,s,1,high\n2,c,s,1,high\n2.5,d,r,1,high\n3.5,e,s,1,high\n9.5,f,,1,high\n9.6,g,,1,high\n"))
	require.NoError(t, err)
	jobs, ids := logs.Identified()
	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g"}, ids)
	after := func(jobs []Job) (lines []Line) {
		for _, j := range jobs {
			lines = append(lines, j.After)
		}
		return lines
	}
	assert.Equal(t, []Line{0, 1, 0, 0, 3, 0, 0}, after(jobs))
	jobs[2].After = 2
	assert.Equal(t, []Line{0, 1, 0}, after(Only(jobs, []int{0, 4, 5})), "e waits for c, that for b, and that for a")
	assert.Equal(t, "high", jobs[0].Priority.String())
}
