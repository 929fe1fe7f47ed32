package scenario

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/trace"
)

// What jobs share is done once: the fetch of a version's data, and each set of shared rules.
func TestWorkThatIsSharedCountsOnce(t *testing.T) {
	done := map[data]bool{}
	job := trace.Job{Project: "p", Version: 1, Load: 4, Shared: "a", SharedRules: 2, Operators: 1, Output: 0.5}
	assert.Equal(t, 7.5, work(&job, done))
	assert.Equal(t, 1.5, work(&job, done))
	other := job
	other.Shared = "b"
	assert.Equal(t, 3.5, work(&other, done))
	other.Version = 2
	assert.Equal(t, 7.5, work(&other, done))
	alone := trace.Job{Project: "q", Load: 4, Operators: 1}
	assert.Equal(t, 5.0, work(&alone, done))

	// A capture tells itself whether the data was there.
	job.Measured = &trace.Measured{Cache: "none"}
	assert.Equal(t, 5.5, work(&job, done))
	alone.Project, alone.Measured = "r", &trace.Measured{Cache: "cached"}
	assert.Equal(t, 1.0, work(&alone, done))
}

func TestReadDemand(t *testing.T) {
	dir := folder(t, map[string]string{"t.jsonl": `{"offset":0,"kind":"prefetch","load_s":9}
{"offset":1,"operators_s":3}
{"offset":2,"operators_s":1}
{"offset":3,"operators_s":2}
`})
	d, err := ReadDemand(filepath.Join(dir, "t.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, 2*time.Second, d.Unloaded, "the median, without the prefetch")
	assert.Zero(t, d.Upstreams, "a trace names none")
	_, err = ReadDemand(filepath.Join(dir, "absent"))
	assert.Error(t, err)
}
