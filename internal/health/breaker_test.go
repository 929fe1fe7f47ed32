package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
)

// interval is the mean time between two health checks.
const interval = 5 * time.Second

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The results of jobs: a success, one that says nothing of the upstream, and failures.
var (
	success   = Failure{One: "success"}
	unjudged  = Failure{One: "unjudged"}
	failed    = Failure{One: "a response of 500 or more", Many: "responses of 500 or more"}
	refused   = Failure{One: "a refused or lost connection", Many: "refused or lost connections"}
	noAnswer  = Failure{One: "a job without a response", Many: "jobs without a response"}
	timedOut  = Failure{One: "a first-byte timeout", Many: "first-byte timeouts"}
	truncated = Failure{One: "a truncated response", Many: "truncated responses", Late: true}
	left      = Failure{One: "the submitter disconnected during the response"}
)

// patient is the breaker of one upstream and the time, which only the test moves.
type patient struct {
	Breaker
	t   *testing.T
	now time.Time
	cfg Config
}

func newPatient(t *testing.T, seed uint64) *patient {
	p := &patient{t: t, now: start, cfg: Config{Settings: Default(), Gate: breaker.NewSimulated, Rand: rand.New(rand.NewPCG(seed, 0))}}
	p.Init(&p.cfg)
	return p
}

func (p *patient) sleep(d time.Duration) { p.now = p.now.Add(d) }

func (p *patient) is() State { return p.Status(p.now).State }

// job lets a job through.
func (p *patient) job() Entry {
	p.t.Helper()
	require.True(p.t, p.Ready(p.now), "not ready")
	e, ok := p.Enter(p.now, false)
	require.True(p.t, ok, "refused")
	return e
}

func (p *patient) ends(e Entry, result Failure) {
	switch result {
	case success:
		p.Ended(p.Started(p.now, e))
	case left:
		p.Started(p.now, e)
	case truncated:
		p.Breaker.Failed(p.now, p.Started(p.now, e), result)
	case unjudged:
		p.Inconclusive(e)
	default:
		p.Breaker.Failed(p.now, e, result)
	}
}

// try lets one job through for each result, one after another.
func (p *patient) try(results ...Failure) {
	p.t.Helper()
	for _, o := range results {
		p.ends(p.job(), o)
	}
}

func (p *patient) fails(times int) {
	p.t.Helper()
	for range times {
		p.try(failed)
	}
}

func (p *patient) refuses() {
	p.t.Helper()
	_, ok := p.Enter(p.now, false)
	assert.False(p.t, ok, "let through")
}

// wait sleeps until an open breaker lets a job through, and returns for how long.
func (p *patient) wait() time.Duration {
	p.t.Helper()
	require.Equal(p.t, Open, p.is())
	left := p.Status(p.now).Until.Sub(p.now)
	p.sleep(left - 1)
	p.refuses()
	p.sleep(1)
	assert.Equal(p.t, HalfOpen, p.is(), "also without a job")
	return left
}

// The results that open a breaker, and the reason in words.
func TestWhatOpensABreaker(t *testing.T) {
	for want, outcomes := range map[string][]Failure{
		"5 responses of 500 or more in a row":                 {failed, failed, failed, failed, failed},
		"5 refused or lost connections in a row":              {failed, success, refused, refused, refused, refused, refused},
		"5 failures in a row, the last: a first-byte timeout": {noAnswer, refused, failed, timedOut, timedOut},
		"":                                   {failed, failed, failed, failed, success, failed, failed, failed, failed},
		"5 jobs without a response in a row": {noAnswer, noAnswer, unjudged, noAnswer, unjudged, noAnswer, unjudged, noAnswer},
		"5 failures in a row, the last: a response of 500 or more": {refused, failed, failed, failed, failed},
	} {
		p := newPatient(t, 1)
		for _, o := range outcomes {
			assert.Equal(t, Closed, p.is())
			p.sleep(100 * time.Hour) // time forgives nothing
			p.try(o)
		}
		assert.Equal(t, want, p.Status(p.now).Why)
		assert.Equal(t, want != "", p.is() == Open)
	}
}

// Truncated responses open the breaker, although the start of each is a success. Their count is reset by the end of a complete
// response, and by a start a minute after the last truncated one. A trial does not wait for the end of a long response.
func TestResponsesThatBreakOff(t *testing.T) {
	broken := []Failure{truncated, truncated, truncated, truncated}
	for name, c := range map[string]struct {
		then  []Failure
		after time.Duration // since the four truncated responses
		want  string
	}{
		"a fifth one":                   {[]Failure{truncated}, time.Second, "5 truncated responses in a row"},
		"another failure":               {[]Failure{refused}, time.Second, "5 failures in a row, the last: a refused or lost connection"},
		"starts between":                {[]Failure{left, left, truncated}, time.Second, "5 truncated responses in a row"},
		"a complete one between":        {[]Failure{success, truncated, failed, left, refused}, time.Second, ""},
		"a start after a minute":        {[]Failure{left, truncated}, time.Minute, ""},
		"none starts in a minute":       {[]Failure{truncated}, time.Minute - 1, "5 truncated responses in a row"},
		"starts end the other failures": {[]Failure{success, failed, failed, failed, failed, left, failed}, time.Second, ""},
	} {
		p := newPatient(t, 1)
		p.try(broken...)
		p.sleep(c.after)
		require.Equal(t, Closed, p.is(), name)
		p.try(c.then...)
		assert.Equal(t, c.want, p.Status(p.now).Why, name)
	}

	p := newPatient(t, 1)
	p.try(broken...)
	p.try(truncated)
	for range 5 { // each trial closes it, and opens it again when its response is truncated
		p.wait()
		trial := p.Started(p.now, p.job())
		require.Equal(t, Closed, p.is())
		p.sleep(time.Minute - 1)
		p.try(left, left)
		p.Breaker.Failed(p.now, trial, truncated)
		require.Equal(t, "again a truncated response after the breaker had closed", p.Status(p.now).Why)
	}
	p.wait()
	p.try(success, truncated, truncated, truncated, truncated)
	assert.Equal(t, Closed, p.is())
	for range 2 { // truncated responses from before the upstream was down do not count
		p.try(truncated)
		p.Refused(p.now)
		p.Reached(p.now)
	}
	p.try(truncated)
	assert.Equal(t, Closed, p.is())
}

func TestOpenTimes(t *testing.T) {
	p := newPatient(t, 1)
	p.fails(5)
	for i, want := range []float64{5, 10, 20, 40, 60, 60} {
		assert.Equal(t, i+1, p.Status(p.now).Trips)
		assert.InEpsilon(t, want, p.wait().Seconds(), 0.2, "they double up to the bound")
		p.try(refused)
		assert.Equal(t, "the trial job failed: a refused or lost connection", p.Status(p.now).Why)
	}
	p.wait()
	p.try(success)
	assert.Equal(t, Status{State: Closed, Since: p.now, Trips: 7}, p.Status(p.now))
	text, err := json.Marshal(p.Status(p.now))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"state":"closed"`)
	p.sleep(time.Minute - 1)
	p.fails(5)
	assert.InEpsilon(t, 60, p.wait().Seconds(), 0.2, "it has not worked for long enough")
	p.try(success)
	p.sleep(time.Minute)
	p.fails(5)
	assert.InEpsilon(t, 5, p.wait().Seconds(), 0.2)
	assert.Equal(t, 1, p.Status(p.now).Trips)

	first, last := time.Hour, time.Duration(0)
	for seed := range uint64(20) {
		p := newPatient(t, seed)
		p.fails(5)
		open := p.Status(p.now).Until.Sub(p.now)
		first, last = min(first, open), max(last, open)
	}
	assert.Greater(t, last-first, time.Second, "sidecars try it again at different times")
}

// Two failed health checks in a row open the breaker and keep it open, until one passes.
func TestHealthChecks(t *testing.T) {
	for name, before := range map[string][]Failure{"idle": nil, "with jobs": {success}} {
		p := newPatient(t, 1)
		p.try(before...)
		sick := errors.New("status 503")
		check := func(why error) { p.Checked(p.now, interval, why) }
		check(sick)
		check(nil)
		check(sick)
		require.Equal(t, Closed, p.is(), name)
		check(sick)
		for range 100 { // it stays open, and does not open anew
			require.Equal(t, "health check failed: status 503", p.Status(p.now).Why)
			require.Equal(t, 1, p.Status(p.now).Trips)
			p.sleep(6 * time.Second)
			require.Equal(t, Open, p.is(), name)
			check(sick)
		}
		check(nil)
		require.Equal(t, HalfOpen, p.is(), name)
		trial := p.job()
		check(sick)
		check(sick)
		require.Equal(t, Open, p.is(), "the checks know better than the trial")
		p.ends(trial, success)
		require.Equal(t, Open, p.is(), "which came before")
		check(nil)
		p.try(success)
		require.Equal(t, Closed, p.is(), name)
	}
}

// One refused connection means that the upstream is down, until it is reached.
func TestARefusedConnectionIsDown(t *testing.T) {
	p := newPatient(t, 1)
	refusal := fmt.Errorf("dial tcp: %w", ErrRefused)
	since := p.now
	for range 100 { // it stays down, and does not open anew
		p.Checked(p.now, interval, refusal)
		require.Equal(t, Open, p.is())
		require.Equal(t, since, p.Down())
		require.Equal(t, "connection refused", p.Status(p.now).Why)
		require.Equal(t, 1, p.Status(p.now).Trips)
		p.sleep(6 * time.Second)
	}
	p.Reached(p.now)
	require.Equal(t, Closed, p.is())
	require.Zero(t, p.Down())
	p.try(success)
	p.fails(5)
	p.Reached(p.now)
	require.Equal(t, Open, p.is(), "what opened for failures of jobs stays open")
}

// A passed health check does not end an open time that failures of jobs began, only its growth.
func TestAHealthCheckDoesNotCloseABreaker(t *testing.T) {
	p, sick := newPatient(t, 1), errors.New("status 503")
	for _, why := range []error{sick, sick, nil} {
		p.Checked(p.now, interval, why)
	}
	p.try(success)
	p.fails(5)
	first := p.wait()
	for range 3 {
		p.fails(1)
		p.wait()
	}
	p.fails(1)
	p.Checked(p.now, interval, nil)
	require.Equal(t, Open, p.is())
	assert.Less(t, p.wait(), 2*first)
	p.try(success)
	p.Checked(p.now, interval, nil)
	assert.Equal(t, Closed, p.is())
}

// The upstream's counters of the jobs of all sidecars. A step is a report of the ended and failed jobs, or a job of this
// sidecar.
func TestFailuresOfOthers(t *testing.T) {
	type counts [2]float64 // ended and failed
	for name, c := range map[string]struct {
		steps []any // counts or Failure
		why   string
	}{
		"if most jobs fail, one failure of its own opens it":                  {[]any{counts{0, 0}, counts{10, 5}, failed}, "a response of 500 or more, and at least half of the jobs of all sidecars fail there"},
		"without a failure of its own, it stays closed":                       {[]any{counts{0, 0}, counts{11, 10}}, ""},
		"five reported failures in a row open it":                             {[]any{counts{0, 0}, counts{2, 2}, counts{2, 2}, counts{5, 5}}, "5 jobs of other sidecars failed there in a row"},
		"four reported failures in a row are too few":                         {[]any{counts{0, 0}, counts{4, 4}}, ""},
		"a reported success resets the count":                                 {[]any{counts{0, 0}, counts{4, 4}, counts{6, 5}, counts{9, 8}}, ""},
		"a success of its own resets the count":                               {[]any{counts{0, 0}, counts{4, 4}, success, counts{8, 8}}, ""},
		"a failure of its own before the report opens it":                     {[]any{counts{0, 0}, failed, counts{3, 1}, counts{6, 3}}, "a job failed, and so did at least half of the jobs of all sidecars there"},
		"the first report has no earlier one to compare":                      {[]any{counts{100, 100}, failed}, ""},
		"a report without ended jobs changes nothing":                         {[]any{counts{0, 0}, counts{10, 9}, counts{10, 9}, failed}, "a response of 500 or more, and at least half of the jobs of all sidecars fail there"},
		"a success of its own ends the state 'most fail'":                     {[]any{counts{0, 0}, counts{10, 9}, success, failed}, ""},
		"jobs of others that succeed end it, too":                             {[]any{counts{0, 0}, counts{10, 9}, counts{20, 10}, failed}, ""},
		"counters that decrease are of a restarted upstream":                  {[]any{counts{9, 9}, counts{5, 1}, failed}, ""},
		"a report without the counter":                                        {[]any{counts{0, 0}, counts{5, -1}, counts{10, 10}, failed}, ""},
		"it stays open while others fail":                                     {[]any{counts{0, 0}, counts{1, 1}, failed, counts{3, 3}}, "jobs of other sidecars fail there"},
		"a failure of its own that only the report after the next one counts": {[]any{counts{0, 0}, counts{1, 1}, failed, counts{1, 1}, counts{2, 2}}, "a response of 500 or more, and at least half of the jobs of all sidecars fail there"},
		"a failure of its own, and one of another sidecar":                    {[]any{counts{0, 0}, counts{1, 1}, failed, counts{1, 1}, counts{3, 3}}, "jobs of other sidecars fail there"},
		"a failure of its own that the upstream never counts":                 {[]any{counts{0, 0}, counts{1, 1}, failed, counts{1, 1}, counts{1, 1}, counts{2, 2}}, "jobs of other sidecars fail there"},
		"a failure of its own counts once":                                    {[]any{counts{0, 0}, failed, counts{1, 1}, failed, counts{2, 2}}, ""},
		"reported late, failures of its own are not other sidecars'":          {[]any{counts{0, 0}, failed, failed, failed, failed, success, counts{4, 4}, counts{5, 5}}, ""},
		"a failure of its own before the first report":                        {[]any{failed, counts{0, 0}, counts{1, 1}, counts{1, 1}}, ""},
		"a failure of its own that the next report counts":                    {[]any{counts{0, 0}, counts{1, 1}, failed, counts{2, 2}}, "a response of 500 or more, and at least half of the jobs of all sidecars fail there"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t, 1)
			for _, step := range c.steps {
				p.sleep(time.Second)
				switch s := step.(type) {
				case counts:
					p.Reported(p.now, s[0], s[1])
				case Failure:
					if p.try(s); s == failed {
						p.CountFailure()
					}
				}
			}
			assert.Equal(t, c.why, p.Status(p.now).Why)
		})
	}
	p := newPatient(t, 1)
	p.Reported(p.now, 0, 0)
	p.Reported(p.now, 1, 1)
	p.fails(1)
	p.wait()
	trial := p.job()
	p.Reported(p.now, 9, 9)
	assert.Equal(t, HalfOpen, p.is(), "a trial under way decides for itself")
	p.ends(trial, success)
	assert.Equal(t, Closed, p.is())
}

// oracle is the breaker as documented, with open times.
type oracle struct {
	state    State
	epoch    int // counts transitions: a verdict counts in its own epoch only
	failures int
	until    time.Time // open: may be tried; half open: the trial is overdue
	trial    int       // the ticket of the job under way as the trial; 0 is none
	closedAt time.Time // of the last time that it closed
	broken   int       // truncated responses since the last complete one
	brokeAt  time.Time // when the last one was truncated, or the breaker closed last
	open     time.Duration
}

func (o *oracle) enter(now time.Time, ticket int) bool {
	switch {
	case o.state == Closed:
		return true
	case now.Before(o.until) && (o.state == Open || o.trial != 0):
		return false
	}
	o.state = HalfOpen
	o.trial, o.until = ticket, now.Add(time.Minute)
	return true
}

// done returns whether the breaker opened, for how long without jitter.
func (o *oracle) done(now time.Time, ticket, epoch int, past bool, v Failure) (time.Duration, bool) {
	starts := v == success || v == left || v == truncated
	switch {
	case epoch != o.epoch, past && !starts:
		return 0, false
	case v == unjudged && o.trial == ticket:
		o.trial = 0
		return 0, false
	case v == unjudged:
		return 0, false
	case starts && o.state != Closed:
		o.enters(Closed)
		o.closedAt, o.brokeAt = now, now
	case starts && (v == success || o.broken == 0 || now.Sub(o.brokeAt) >= time.Minute):
		o.failures, o.broken = 0, 0
	}
	switch v {
	case success:
		o.failures, o.broken = 0, 0
		return 0, false
	case left:
		return 0, false
	case truncated:
		o.broken++
		o.brokeAt = now
	}
	o.failures++
	if o.state == Closed && o.failures < 5 && (v != truncated || o.broken < 5) {
		return 0, false
	}
	o.open = min(2*o.open, time.Minute)
	if o.open == 0 || o.state == Closed && now.Sub(o.closedAt) >= time.Minute {
		o.open = 5 * time.Second
	}
	o.enters(Open)
	return o.open, true
}

func (o *oracle) enters(to State) {
	o.state = to
	o.epoch++
	o.failures, o.trial = 0, 0
}

func TestAgainstTheOracle(t *testing.T) {
	visits := map[State]int{}
	for seed := range uint64(100) {
		againstOracle(t, seed, visits)
	}
	for _, state := range []State{Closed, HalfOpen, Open} {
		require.Greater(t, visits[state], 1000, "%v was hardly tried", state)
	}
}

func againstOracle(t *testing.T, seed uint64, visits map[State]int) {
	type job struct {
		Entry
		ticket, epoch int
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	p, o := newPatient(t, seed), &oracle{state: Closed}
	var jobs []*job
	sick := 0.5
	for step := range 1000 {
		switch action := rng.IntN(100); {
		case action < 5:
			sick = rng.Float64()
		case action < 45:
			ready := p.Ready(p.now)
			e, ok := p.Enter(p.now, false)
			require.Equal(t, ready, ok, "seed %d, step %d", seed, step)
			require.Equal(t, o.enter(p.now, step+1), ok, "seed %d, step %d", seed, step)
			if ok || rng.IntN(8) == 0 { // or it goes there in panic
				jobs = append(jobs, &job{Entry: e, ticket: step + 1, epoch: o.epoch})
			}
		case action < 85 && len(jobs) > 0:
			// The newest are likelier than the old.
			i := len(jobs) - 1 - min(rng.IntN(len(jobs)), rng.IntN(len(jobs)))
			j := jobs[i]
			jobs = slices.Delete(jobs, i, i+1)
			v := success
			if rng.Float64() < sick {
				v = []Failure{failed, truncated}[rng.IntN(2)]
			}
			if rng.IntN(3) == 0 {
				v = []Failure{left, unjudged}[rng.IntN(2)]
			}
			p.ends(j.Entry, v)
			if open, opened := o.done(p.now, j.ticket, j.epoch, j.bypassed, v); opened {
				o.until = p.Status(p.now).Until // the jitter is not the oracle's to know
				require.InEpsilon(t, open.Seconds(), o.until.Sub(p.now).Seconds(), 0.2, "seed %d, step %d", seed, step)
			}
		case rng.IntN(3) == 0:
			p.sleep(time.Duration(rng.IntN(70)) * time.Second)
		default:
			p.sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		}
		want := o.state
		if want == Open && !p.now.Before(o.until) {
			want = HalfOpen
		}
		require.Equal(t, want, p.is(), "seed %d, step %d", seed, step)
		visits[want]++
	}
}
