package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
)

// The breaker hears what happened between two reports, and which of it this
// sidecar knows already.
func TestHearsFailuresOfOthers(t *testing.T) {
	f := newFixture(t, "random", 1)
	now, address := start, upstreams(1)[0].Address
	gate := f.gates[address]
	report := func(completed, failed float64) [3]float64 {
		gate.heard = [3]float64{}
		now = now.Add(5 * time.Second)
		f.Report(now, address, Report{At: now, Completed: completed, Failed: failed})
		return gate.heard
	}
	fail := func() {
		a, err := f.Claim(now, Request{}, nil)
		require.NoError(t, err)
		a.Answered(now, false, nil)
		a.Done(now, Failed)
	}
	nothing := [3]float64{}

	fail()
	assert.Equal(t, nothing, report(100, 10), "nothing is known of the time before")
	assert.Equal(t, [3]float64{20, 7, 7}, report(120, 17), "the failure before was in the first report")
	fail()
	fail()
	assert.Equal(t, [3]float64{10, 5, 3}, report(130, 22))
	fail()
	assert.Equal(t, nothing, report(130, 22), "a failure that the upstream does not count")
	assert.Equal(t, [3]float64{1, 1, 1}, report(131, 23))
	assert.Equal(t, nothing, report(5, 1), "it has restarted")
	assert.Equal(t, [3]float64{2, 2, 2}, report(7, 3))
	assert.Equal(t, nothing, report(9, -1), "it does not say any more")
	assert.Equal(t, nothing, report(9, 9), "the count may be of hours")
	assert.NotContains(t, gate.verdicts, breaker.Healthy)
}

// Who fails jobs at once is not quick.
func TestFailuresAreNoPace(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	for i := range 10 {
		now := start.Add(time.Duration(i) * 5 * time.Second)
		f.Report(now, address, Report{At: now, Cores: 4, CoresBusy: 1, Completed: float64(1000*i + i), Failed: float64(1000 * i)})
	}
	assert.InDelta(t, 0.2, f.members[address].rate.perCore(), 1e-9, "one job in five seconds on one core")
}
