package health

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// event is something that happened to a job of an upstream.
type event struct {
	kind     string // claimed, responded or ended
	upstream int
	number   uint64 // of the claim
}

// owes works out from the whole history what an upstream owes: responses, claims elsewhere since the first claim that it owes
// a response to, and how many of those were responded to. It counts from first, the first claim since it owed nothing.
func owes(history []event, upstream int) (owed, elsewhere, responded int, first uint64) {
	owing := map[uint64]bool{}
	for _, e := range history {
		switch {
		case e.upstream != upstream && e.kind == "claimed":
			elsewhere++
		case e.upstream != upstream:
			if e.kind == "responded" && len(owing) > 0 && e.number >= first {
				responded++
			}
		case e.kind == "claimed":
			if len(owing) == 0 {
				first, elsewhere, responded = e.number, 0, 0
			}
			owing[e.number] = true
		case e.kind == "responded":
			clear(owing)
		default:
			delete(owing, e.number)
		}
	}
	return len(owing), elsewhere, responded, first
}

// chance is how likely an upstream that works owes as much, by the rule of succession.
func chance(owed, elsewhere, responded int) float64 {
	chance := 1.0
	for i := range owed {
		chance *= float64(elsewhere-responded+1+i) / float64(elsewhere+2+i)
	}
	return chance
}

// suspect is what the documentation says of one upstream.
type suspect struct {
	suspect             bool
	reported, responded time.Time
	failures            []time.Time // of reports in a row
	polled              time.Time
}

// Random histories make the suspects, and poll the upstreams, that the whole history asks for.
func TestSuspectsAgainstTheWholeHistory(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(150) {
		suspectsAgree(t, rand.New(rand.NewPCG(seed, 0)), counts)
	}
	for _, what := range []string{"owes", "reports fail", "polled", "cleared by a response", "cleared by a report"} {
		assert.Greater(t, counts[what], 20, what)
	}
}

func suspectsAgree(t *testing.T, rng *rand.Rand, counts map[string]int) {
	const n = 4
	type job struct {
		upstream int
		number   uint64
	}
	var w Watch
	var upstreams [n]Suspicion
	var want [n]suspect
	var history []event
	var jobs []job
	now, sick, silent := start, rng.IntN(n), rng.IntN(2) == 0
	for i := range upstreams {
		upstreams[i].Address = fmt.Sprint(i)
	}
	for range 250 {
		now = now.Add(time.Duration(rng.ExpFloat64() * 3e8))
		var polled []string
		weigh := func(i int) {
			s := &want[i]
			owed, elsewhere, responded, _ := owes(history, i)
			p, reports := chance(owed, elsewhere, responded), now.Sub(s.reported) <= 2*interval
			switch {
			case s.suspect || p >= 0.05:
			case p < 0.001 && len(s.failures) > 0, p < 0.0003 && !reports && owed >= 2:
				s.suspect = true
				counts["owes"]++
			case !s.reported.IsZero() && now.Sub(s.reported) >= time.Second && now.Sub(s.polled) >= time.Second:
				s.polled = now
				polled = append(polled, fmt.Sprint(i))
				counts["polled"]++
			}
		}
		switch k := rng.IntN(20); {
		case k < 9:
			i := rng.IntN(n)
			number := w.Claimed(now, &upstreams[i], interval)
			jobs = append(jobs, job{i, number})
			history = append(history, event{"claimed", i, number})
			weigh(i)
		case k < 17 && len(jobs) > 0:
			at := rng.IntN(len(jobs))
			j := jobs[at]
			if j.upstream == sick && rng.IntN(40) > 0 {
				break
			}
			jobs = slices.Delete(jobs, at, at+1)
			i := j.upstream
			if rng.IntN(5) == 0 {
				upstreams[i].Ended(j.number)
				history = append(history, event{"ended", i, j.number})
				break
			}
			w.Responded(now, &upstreams[i], j.number, interval)
			history = append(history, event{"responded", i, j.number})
			if want[i].suspect {
				counts["cleared by a response"]++
			}
			want[i].suspect, want[i].responded = false, now
			for other := range n {
				owed, _, _, first := owes(history, other)
				if other != i && owed > 0 && j.number >= first && now.Sub(want[other].reported) > 2*interval {
					weigh(other)
				}
			}
		case k < 19 && (!silent || rng.IntN(30) == 0):
			i := rng.IntN(n)
			if i == sick && rng.IntN(4) > 0 {
				w.ReportFailed(now, &upstreams[i], errors.New("status 500"), interval)
				if s := &want[i]; !s.reported.IsZero() {
					if s.failures = append(s.failures, now); len(s.failures) >= 2 && s.responded.Before(s.failures[0]) {
						if !s.suspect {
							counts["reports fail"]++
						}
						s.suspect = true
					} else {
						weigh(i)
					}
				}
				break
			}
			w.Reported(now, &upstreams[i])
			if want[i].suspect {
				counts["cleared by a report"]++
			}
			want[i].suspect, want[i].reported, want[i].failures = false, now, nil
		}
		got := w.TakePolls()
		slices.Sort(got)
		slices.Sort(polled)
		require.Equal(t, polled, got)
		for i := range upstreams {
			require.Equal(t, want[i].suspect, upstreams[i].Why() != "", "upstream %d", i)
		}
	}
}

// A suspect without jobs gets one to try it after a while, unless its last poll had no response and none came since.
func TestATrialOfASuspect(t *testing.T) {
	for name, c := range map[string]struct {
		why      error
		reported bool
		want     bool
	}{
		"its reports fail":             {errors.New("status 404"), false, true},
		"no response to its last poll": {ErrNoResponse, false, false},
		"a report since":               {ErrNoResponse, true, true},
	} {
		var w Watch
		s, other := Suspicion{Address: "a"}, Suspicion{Address: "b"}
		w.Reported(start, &s)
		w.ReportFailed(start, &s, c.why, interval)
		w.ReportFailed(start, &s, c.why, interval)
		now := start
		if c.reported {
			w.Reported(now, &s)
			now = now.Add(time.Minute)
			for range 2 {
				w.Claimed(now, &s, interval)
			}
			for s.Why() == "" {
				w.Responded(now, &other, w.Claimed(now, &other, interval), interval)
			}
		}
		require.NotEmpty(t, s.Why(), name)
		assert.True(t, s.Excludes(now.Add(trialAfter-1), 0), name)
		assert.Equal(t, !c.want, s.Excludes(now.Add(trialAfter), 0), name)
		assert.True(t, s.Excludes(now.Add(trialAfter), 1), "%s: one at a time", name)
		w.Claimed(now.Add(trialAfter), &s, interval)
		assert.True(t, s.Excludes(now.Add(2*trialAfter-1), 0), "%s: the last job was the trial", name)
	}
}

// A report clears a suspect only if it describes an instant at which the suspicion had begun. An older one can arrive later,
// such as one that Prometheus has scraped. Failed polls are evidence from the first one on.
func TestOnlyALaterReportClearsASuspect(t *testing.T) {
	failed := start.Add(10 * time.Second)
	owes := func(w *Watch, s *Suspicion) {
		other := Suspicion{Address: "b"}
		for range 2 {
			w.Claimed(failed, s, interval)
		}
		for range 5000 {
			w.Responded(failed, &other, w.Claimed(failed, &other, interval), interval)
		}
	}
	fails := func(w *Watch, s *Suspicion) {
		for i := range 2 {
			w.ReportFailed(failed.Add(time.Duration(i)*time.Second), s, ErrNoResponse, interval)
		}
	}
	for name, c := range map[string]struct {
		suspect func(*Watch, *Suspicion)
		at      time.Time // what the report describes
		clears  bool
	}{
		"polls fail, an older report":        {fails, failed.Add(-1), false},
		"polls fail, a report between":       {fails, failed.Add(time.Second / 2), false},
		"polls fail, a report since":         {fails, failed.Add(time.Second), true},
		"it owes responses, an older report": {owes, failed.Add(-1), false},
		"it owes responses, a report since":  {owes, failed, true},
		"one failed poll, an older report":   {nil, failed.Add(-1), false},
		"one failed poll, a report since":    {nil, failed, true},
	} {
		var w Watch
		s := Suspicion{Address: "a"}
		w.Reported(start.Add(-interval), &s)
		if c.suspect == nil {
			w.ReportFailed(failed, &s, ErrNoResponse, interval)
		} else {
			c.suspect(&w, &s)
			require.NotEmpty(t, s.Why(), name)
		}
		w.Reported(c.at, &s)
		assert.Equal(t, c.clears, s.Why() == "" && !s.ReportsFail(), name)
		assert.Equal(t, c.at, s.LastReport(), name)
	}
}

// Responses elsewhere make no suspect of an upstream that has left.
func TestAnUpstreamThatLeftIsNotJudged(t *testing.T) {
	var w Watch
	s, other := Suspicion{Address: "a"}, Suspicion{Address: "b"}
	w.Claimed(start, &s, interval)
	w.Claimed(start, &s, interval)
	s.Left()
	for range 5000 {
		w.Responded(start, &other, w.Claimed(start, &other, interval), interval)
	}
	require.Empty(t, s.Why())
}
