package proxy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"pilotfish/internal/pool"
	"pilotfish/internal/proxy"
)

func TestAJobIsAnswered(t *testing.T) {
	c := startSidecar(t, setup{upstreams: []string{refusing(t), serving(t, echo)}})
	job := `{"project_id": 12345, "priority": "high", "session_id": "s", "rules": []}`
	res, text := c.post(job)
	assert.Equal(t, 200, res.StatusCode)
	assert.Equal(t, job, text)

	r := c.seen(1)[0]
	assert.Equal(t, "12345", r.Facts.Project.String())
	assert.Equal(t, proxy.Answered, r.Outcome)
	assert.Equal(t, proxy.Complete, r.Answer)
	assert.EqualValues(t, len(job), r.Bytes)
	assert.Len(t, r.Attempts, 2)
	assert.Equal(t, pool.Refused, r.Attempts[0].Outcome)
	assert.Equal(t, pool.Answered, r.Attempts[1].Outcome)
}
