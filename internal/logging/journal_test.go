package logging

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// told is a journal, and what it has logged since the last call of the function.
func told() (*Journal, func() []string) {
	core, logs := observer.New(zap.DebugLevel)
	return NewJournal(zap.New(core)), func() (lines []string) {
		for _, e := range logs.TakeAll() {
			fields := e.ContextMap()
			lines = append(lines, fmt.Sprintf("%v %v %s (%v)", e.Level, fields["upstream"], e.Message, fields["cause"]))
		}
		return lines
	}
}

func TestJournalOfOneUpstream(t *testing.T) {
	j, lines := told()
	state := pool.State{Upstream: pool.Upstream{Address: "a:1"}}
	look := func() []string {
		for range 3 { // each change is told once
			j.Look([]pool.State{state})
		}
		return lines()
	}
	assert.Empty(t, look(), "nothing is known yet")
	state.ReportFresh = true
	assert.Empty(t, look())

	j.ReportFailed("a:1", errors.New("status 500"))
	assert.Empty(t, look(), "the last report still counts")
	state.ReportFresh = false
	assert.Equal(t, []string{"warn a:1 the upstream does not report: its load is judged by this sidecar's own jobs there (status 500)"}, look())
	state.ReportFresh = true
	assert.Equal(t, []string{"info a:1 the upstream reports again (<nil>)"}, look())

	j.Ended(&record.Job{Attempts: []record.Attempt{{Upstream: "a:1", Err: errors.New("connection refused")}, {Upstream: "b:1"}}})
	state.Breaker.State = breaker.Open
	assert.Equal(t, []string{"warn a:1 the upstream is suspected: attempts failed one after another, and jobs go elsewhere (connection refused)"}, look())
	state.Breaker.State = breaker.HalfOpen
	assert.Empty(t, look())
	state.Breaker.State = breaker.Closed
	assert.Equal(t, []string{"info a:1 the upstream works again (<nil>)"}, look())

	state.Suspect = "2 reports in a row failed"
	assert.Equal(t, []string{"warn a:1 the upstream is suspect: it seems to hang, and new jobs go elsewhere (2 reports in a row failed)"}, look())
	state.Suspect = ""
	assert.Equal(t, []string{"info a:1 the upstream is no longer suspect: it reports or answers again (<nil>)"}, look())

	state.Implausible = "4000 cores"
	assert.Equal(t, []string{"warn a:1 the upstream reports what cannot be true: those figures count as unknown (4000 cores)"}, look())
	state.Implausible = ""
	assert.Equal(t, []string{"info a:1 the upstream's figures are plausible again (<nil>)"}, look())

	state.Draining, state.StopsAt = true, time.Now()
	assert.Equal(t, []string{"info a:1 the upstream drains: it gets no new jobs (<nil>)"}, look())
	state.Draining = false
	assert.Equal(t, []string{"info a:1 the upstream takes jobs again: it no longer drains (<nil>)"}, look())
}

// An upstream that has never reported is told of after a few failures.
func TestJournalOfAnUpstreamThatNeverReports(t *testing.T) {
	j, lines := told()
	states := []pool.State{{Upstream: pool.Upstream{Address: "a:1"}}}
	for range enoughUnheard {
		j.Look(states)
		assert.Empty(t, lines())
		j.ReportFailed("a:1", errors.New("connection refused"))
	}
	j.Look(states)
	assert.Equal(t, []string{"warn a:1 the upstream does not report: its load is judged by this sidecar's own jobs there (connection refused)"}, lines())
}

// What has left is forgotten, and begins anew when it comes back.
func TestJournalForgets(t *testing.T) {
	j, lines := told()
	state := pool.State{Upstream: pool.Upstream{Address: "a:1", Draining: true}}
	j.Look([]pool.State{state})
	assert.Len(t, lines(), 1)
	j.ReportFailed("gone:1", errors.New("late"))
	j.Look(nil)
	assert.Empty(t, j.seen)
	j.Look([]pool.State{state})
	assert.Len(t, lines(), 1)
}
