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

// Size multiplies what the data of others costs, and changes nothing else.
func TestSizeOfNeeds(t *testing.T) {
	of := func(size float64) []trace.Job {
		return all(t, config(func(c *Config) {
			c.Pattern, c.Jobs, c.Projects, c.Needs = steady, 200, 20, Needs{Count: 30, Most: 4, Each: true, Size: size}
		}))
	}
	plain, large := of(0), of(5)
	require.Len(t, large, len(plain))
	for i := range plain {
		require.Len(t, large[i].Needs, len(plain[i].Needs))
		for k, n := range plain[i].Needs {
			require.Equal(t, trace.Need{Name: n.Name, Load: 5 * n.Load, Bytes: 5 * n.Bytes}, large[i].Needs[k])
		}
		plain[i].Needs, large[i].Needs = nil, nil
	}
	require.Equal(t, plain, large)
}
