package workload

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// Jobs of a project need the same, or each what it draws; nothing twice.
func TestNeeds(t *testing.T) {
	for _, each := range []bool{false, true} {
		jobs := all(t, config(func(c *Config) {
			c.Pattern, c.Jobs, c.Projects, c.Needs = steady, 2000, 20, Needs{Count: 30, Most: 4, Each: each}
		}))
		of, differ, counts := map[trace.Project][]trace.Need{}, 0, make([]int, 5)
		for i := range jobs {
			j := &jobs[i]
			counts[len(j.Needs)]++
			seen := map[trace.Project]bool{}
			for _, n := range j.Needs {
				require.False(t, seen[n.Name])
				seen[n.Name] = true
				require.Positive(t, n.Bytes)
			}
			if before, ok := of[j.Project]; ok && !reflect.DeepEqual(before, j.Needs) {
				differ++
			}
			of[j.Project] = j.Needs
		}
		assert.NotContains(t, counts, 0, "all numbers are drawn")
		assert.Equal(t, each, differ > 1000)
		if !each {
			assert.Zero(t, differ)
		}
	}
}
