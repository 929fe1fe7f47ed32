package record

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

func TestAttemptsAndTheirReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Job{Arrived: time.Now(), Read: intake.NoProject}
		h := http.Header{}
		r.Explain(h)
		assert.Empty(t, h, "nothing was decided")

		time.Sleep(time.Second)
		r.Begin(time.Now(), &pool.Choice{Address: "a:1", Cache: selection.Cached, Why: pool.Why{Panic: true, Heavy: true, Prefetched: true}})
		time.Sleep(time.Second)
		failed := errors.New("connection refused")
		r.EndAttempt(time.Now(), pool.Refused, failed)
		r.Begin(time.Now(), &pool.Choice{
			Address: "b:1",
			Why:     pool.Why{Cost: selection.Cost{Total: 2.5, Wait: .5, Fetch: 2}, RunnerUp: "c:1", RunnerUpCost: 3.25, Shadow: "d:1", ShadowCost: 4},
		})
		time.Sleep(time.Second)
		r.EndAttempt(time.Now(), pool.Answered, nil)

		first, second := r.Attempts[0], r.Attempts[1]
		assert.Equal(t, []any{time.Second, 2 * time.Second, pool.Refused, failed.Error(), selection.Cached}, []any{first.Start, first.End, first.Outcome, first.Err, first.Cache})
		assert.Equal(t, []any{2 * time.Second, 3 * time.Second, pool.Answered}, []any{second.Start, second.End, second.Outcome})
		assert.Equal(t, "cost=0.000 wait=0.000 fetch=0.000 placement=0.000 stop=0.000 panic heavy prefetched", string(first.AppendWhy(nil)))
		r.Explain(h)
		assert.Equal(t, http.Header{
			"Pilotfish-Upstream": {"b:1"},
			"Pilotfish-Cache":    {"none"},
			"Pilotfish-Attempts": {"2"},
			"Pilotfish-Read":     {"no_project"},
			"Pilotfish-Why":      {"cost=2.500 wait=0.500 fetch=2.000 placement=0.000 stop=0.000 runner_up=c:1 runner_up_cost=3.250 shadow=d:1 shadow_cost=4.000"},
		}, h)
	})
}

// The duration without load is known only for a complete response with a reported wait.
func TestStretch(t *testing.T) {
	r := Job{
		Completeness: intake.Complete, Total: 8 * time.Second,
		Attempts: []Attempt{
			{Upstream: "a:1", Outcome: pool.NotStarted, Start: time.Second, Hint: &pool.Hint{Waited: time.Hour}},
			{Upstream: "b:1", Start: 2 * time.Second},
		},
	}
	last := &r.Attempts[1]
	for o := range pool.Outcome(pool.Outcomes) {
		last.Outcome, last.Hint = o, &pool.Hint{Waited: 2 * time.Second}
		times, ok := r.Stretch()
		require.Equal(t, o == pool.Answered || o == pool.Failed, ok, o)
		if ok {
			assert.Equal(t, 2.0, times)
		}
	}
	last.Outcome = pool.Answered
	for _, hint := range []*pool.Hint{nil, {Waited: -1}, {Waited: 6 * time.Second}, {Waited: time.Hour}} {
		last.Hint = hint
		_, ok := r.Stretch()
		assert.False(t, ok, "%+v", hint)
	}
	last.Hint, r.Completeness = &pool.Hint{}, intake.Partial
	_, ok := r.Stretch()
	assert.False(t, ok)
	_, ok = (&Job{Completeness: intake.Complete}).Stretch()
	assert.False(t, ok)
}

func TestOfManyAttemptsTheFirstAndTheLatestAreKept(t *testing.T) {
	var r Job
	for i := range maxAttempts + 5 {
		r.Begin(time.Now(), &pool.Choice{Address: strconv.Itoa(i)})
		r.Attempt().Hinted(pool.Hint{Waited: time.Duration(i)})
	}
	require.Len(t, r.Attempts, maxAttempts)
	for _, a := range r.Attempts {
		assert.Equal(t, a.Upstream, strconv.FormatInt(int64(a.Hint.Waited), 10), "the hint belongs to this attempt")
	}
	assert.Equal(t, []string{"0", "6"}, []string{r.Attempts[0].Upstream, r.Attempts[1].Upstream})
	assert.Equal(t, strconv.Itoa(maxAttempts+4), r.Attempt().Upstream)
}

func TestNotStarted(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		want   bool
	}{
		{503, "", false}, {503, "Retry-After: 1", true}, {503, "Job-Started: no", true}, {503, "Job-Started: yes", false}, {500, "Retry-After: 1", false},
	} {
		h := http.Header{}
		if key, value, ok := strings.Cut(c.header, ": "); ok {
			h.Set(key, value)
		}
		assert.Equal(t, []bool{c.want, c.want}, []bool{NotStarted(c.status, h), Limited(c.status-503+429, h)}, "%d %s", c.status, c.header)
	}
}
