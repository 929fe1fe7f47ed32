package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// TestACrowdComesOnTop: the jobs of the pattern stay what they are, and those of
// the crowd are of one project, within its time.
func TestACrowdComesOnTop(t *testing.T) {
	plain := small(4)
	crowded := plain
	crowded.Crowd = Crowd{At: 1000, For: 60, Jobs: 3000, HighShare: 0.25}
	type sent struct {
		at      float64
		project trace.Project
		work    float64
	}
	usual := map[sent]int{}
	for _, job := range all(t, plain) {
		usual[sent{job.Offset, job.Project, job.Work()}]++
	}
	jobs := all(t, crowded)
	require.Len(t, jobs, plain.Jobs+3000)
	projects, high, more := map[trace.Project]int{}, 0, 0
	for _, job := range jobs {
		key := sent{job.Offset, job.Project, job.Work()}
		if usual[key] > 0 {
			usual[key]--
			continue
		}
		more++
		projects[job.Project]++
		assert.True(t, 1000 <= job.Offset && job.Offset <= 1060, "%v", job.Offset)
		if job.Priority == selection.High {
			high++
		}
	}
	assert.Equal(t, 3000, more)
	assert.Len(t, projects, 1)
	assert.InDelta(t, 750, high, 120)
}
