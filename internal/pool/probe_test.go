package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// newProbing is a pool that probes its n upstreams, which have reported that the later ones have more jobs. Project 1 is cached
// at all of them.
func newProbing(t *testing.T, n int, service float64) *fixture {
	f := newFixture(t, "expected", n)
	for i, u := range upstreams(n) {
		f.Report(start, u.Address, report(start, float64(20+10*i), 0, 1))
	}
	f.cfg.Probe, f.norms.service = true, service
	return f
}

// The three upstreams are probed that the policy would choose, if jobs are long enough.
func TestWhatIsProbed(t *testing.T) {
	u := upstreams(5)
	job := Request{Project: 1}
	for name, c := range map[string]struct {
		service float64
		request Request
		change  func(f *fixture)
		want    []string
		timeout time.Duration
	}{
		"the cheapest":      {5, job, func(*fixture) {}, []string{u[0].Address, u[1].Address, u[2].Address}, 20 * time.Millisecond},
		"shorter jobs":      {0.5, job, func(*fixture) {}, []string{u[0].Address, u[1].Address, u[2].Address}, 5 * time.Millisecond},
		"short jobs":        {0.09, job, func(*fixture) {}, nil, 0},
		"unknown length":    {0, job, func(*fixture) {}, nil, 0},
		"probes turned off": {5, job, func(f *fixture) { f.cfg.Probe = false }, nil, 0},
		"a prompt":          {5, Request{Project: 1, Data: &intake.Parts{Parts: []intake.Part{{Key: 1, Bytes: 64}}}}, func(*fixture) {}, nil, 0},
		"a single upstream": {5, Request{Project: 1, Among: places([]string{u[3].Address})}, func(*fixture) {}, nil, 0},
		"one never reported": {
			5, Request{Project: 1, Among: places([]string{u[0].Address, u[1].Address})}, func(f *fixture) { f.members[u[1].Address].load.reset() },
			[]string{u[0].Address}, 20 * time.Millisecond,
		},
		"one is shut": {5, job, func(f *fixture) { f.shut(u[0].Address, true) }, []string{u[1].Address, u[2].Address, u[3].Address}, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			f := newProbing(t, 5, c.service)
			c.change(f)
			addresses, timeout := f.Probes(start, c.request, nil)
			assert.ElementsMatch(t, c.want, addresses)
			if len(c.want) > 0 {
				assert.Equal(t, c.timeout, timeout)
			}
			ranked, err := f.Explain(start, c.request)
			require.NoError(t, err)
			var explained []string
			for _, r := range ranked {
				if r.Probe {
					explained = append(explained, r.Address)
				}
			}
			assert.ElementsMatch(t, c.want, explained)
		})
	}
}

// Jobs run beyond the busy cores wait for a fetch and are not in line.
func TestAProbedUpstreamReportsBusyCores(t *testing.T) {
	f, u := newProbing(t, 2, 5), upstreams(2)
	now := start.Add(time.Second)
	f.Probed(now, u[0].Address, 1, &Hint{At: now, Running: [2]float64{20, 0}, Stalled: [2]float64{1, 0}, Utilization: -1, CoresBusy: 16})
	ranked, err := f.Explain(now, Request{Project: 1})
	require.NoError(t, err)
	assert.Equal(t, u[0].Address, ranked[0].Address)
	assert.InDelta(t, 4, f.members[u[0].Address].load.blocked(true), 0)
}

// An upstream whose probes fail is not probed for a minute, and other upstreams are.
func TestFailedProbesPause(t *testing.T) {
	f, u := newProbing(t, 2, 5), upstreams(2)
	probed := func(now time.Time) []string {
		addresses, _ := f.Probes(now, Request{Project: 1}, nil)
		return addresses
	}
	load := func(now time.Time) *Hint { return &Hint{At: now, Utilization: -1, CoresBusy: -1} }
	for i := range 10 { // never three in a row
		now := start.Add(time.Duration(i) * time.Millisecond)
		if f.Probed(now, u[0].Address, 1, nil); i%2 == 1 {
			f.Probed(now, u[0].Address, 1, load(now))
		}
		require.Len(t, probed(now), 2)
	}
	now := start.Add(time.Second)
	for range 3 {
		f.Probed(now, u[0].Address, 1, nil)
	}
	assert.Equal(t, []string{u[1].Address}, probed(now))
	for i, u := range u { // reports go on
		f.Report(now.Add(59*time.Second), u.Address, report(now.Add(59*time.Second), float64(i), 0, 1))
	}
	f.norms.service = 5
	assert.Equal(t, []string{u[1].Address}, probed(now.Add(59*time.Second)))
	assert.Len(t, probed(now.Add(time.Minute)), 2)
}

// What another sidecar had fetched since the last listing is known from a probe.
func TestAProbeFindsACachedProject(t *testing.T) {
	u := upstreams(2)
	now := start.Add(time.Second)
	at := func(project uint64, cached bool) selection.Cache {
		f := newProbing(t, 2, 5)
		load := &Hint{At: now, Utilization: -1, CoresBusy: -1, Known: true, Cached: cached}
		f.Probed(now, u[0].Address, project, load)
		f.Probed(now, u[0].Address, 0, load) // for a job without a project
		return f.cache(f.members[u[0].Address], 7, now)
	}
	assert.Equal(t, selection.AssumedCached, at(7, true))
	assert.Equal(t, selection.NotCached, at(7, false))
	assert.Equal(t, selection.NotCached, at(8, true))
}
