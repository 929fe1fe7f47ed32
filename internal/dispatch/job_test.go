package dispatch

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// drawn are the transitions in the comment of Job.
var drawn = map[[2]state]bool{
	{begun, claimed}: true, {begun, waiting}: true, {begun, ended}: true,
	{waiting, claimed}: true, {waiting, ended}: true,
	{claimed, moving}: true, {claimed, paused}: true, {claimed, ended}: true,
	{moving, claimed}: true, {moving, paused}: true, {moving, ended}: true,
	{claimed, withdrawing}: true, {withdrawing, claimed}: true, {withdrawing, paused}: true, {withdrawing, ended}: true,
	{paused, claimed}: true, {paused, waiting}: true, {paused, ended}: true,
}

// history is a random history of a dispatcher, and what its caller holds.
type history struct {
	*fixture
	rng   *rand.Rand
	now   time.Time
	done  [4]float64                // jobs completed, by upstream
	held  map[*Job]*pool.Assignment // the assignments of jobs, which the caller ends
	order []*Job                    // of held
	jobs  map[*Job]state
	seen  map[[2]state]bool
}

// observe notes the transitions that one call has made, and tests the invariant of each state and the counts of all jobs.
func (h *history) observe() {
	waits, moves, inFlight := 0, 0, map[uint64]int{}
	for j, was := range h.jobs {
		if j.state != was {
			change := [2]state{was, j.state}
			require.True(h.t, drawn[change], "%v is not drawn", change)
			h.seen[change], h.jobs[j] = true, j.state
		}
		if j.state == ended {
			delete(h.jobs, j)
		}
		holds := h.held[j] != nil
		require.Equal(h.t, j.state == waiting, j.wait.place != nil)
		require.Equal(h.t, j.state == moving || j.state == withdrawing, j.to != nil)
		require.True(h.t, !holds || j.state == claimed || j.to != nil)
		switch j.state {
		case waiting:
			waits++
		case moving, withdrawing:
			moves++
			inFlight[j.Project]++
		case claimed:
			inFlight[j.Project]++
		}
	}
	backlog := 0
	for project := range h.queue.backlogs {
		backlog += h.queue.backlogs.of(project)
	}
	require.Equal(h.t, []int{waits, waits}, []int{h.Waiting(), backlog})
	require.Equal(h.t, len(h.held)+moves, h.Pool().InFlight())
	for project := uint64(1); h.projects.Limit >= 1 && project < 4; project++ {
		require.LessOrEqual(h.t, float64(inFlight[project]), h.projects.Limit)
	}
}

// serve lets waiting jobs claim upstreams.
func (h *history) serve() {
	for _, g := range h.Serve(h.now) {
		require.True(h.t, h.jobs[g.Job] == waiting || errors.Is(g.Err, ErrDisplaced), "a grant for a job that does not wait")
		h.take(g.Job, g)
	}
	h.observe()
}

func (h *history) take(j *Job, g Grant) {
	if g.Assignment != nil {
		h.held[j] = g.Assignment
		h.order = append(h.order, j)
	}
}

func (h *history) arrive(j *Job) {
	if g, granted := h.Arrive(h.now, j); granted {
		h.take(j, g)
	}
	h.observe()
}

// end ends an attempt, as a success or a failure.
func (h *history) end(j *Job) {
	a := h.held[j]
	h.release(j)
	if h.rng.IntN(3) == 0 {
		h.CancelMove(h.now, j)
		a.Answered(h.now, true, nil)
		a.Done(h.now, pool.Answered)
		delete(h.jobs, j)
		return
	}
	f := Failure{
		Outcome:    []pool.Outcome{pool.Refused, pool.NoAnswer, pool.NotStarted, pool.Gone, pool.Moved}[h.rng.IntN(5)],
		Progress:   Progress(h.rng.IntN(3)),
		Repeatable: h.rng.IntN(8) > 0,
		Stale:      h.rng.IntN(4) == 0,
	}
	a.Done(h.now, f.Outcome)
	next := h.Failed(h.now, j, f)
	h.observe()
	if next.Again {
		h.now = h.now.Add(next.Pause)
		h.arrive(j)
	}
}

func (h *history) release(j *Job) {
	delete(h.held, j)
	for i, other := range h.order {
		if other == j {
			h.order = append(h.order[:i], h.order[i+1:]...)
			return
		}
	}
}

// Random histories make only the transitions that are drawn, all of them, and keep the invariant of each state. No job is lost
// or counted twice (invariant 1). Upstreams 0 to 3 report, 4 and 5 have health checks.
func TestRandomHistories(t *testing.T) {
	seen := map[[2]state]bool{}
	for seed := range uint64(16) {
		h := &history{
			fixture: newFixtureOver(t, 6, pool.Settings{Withdraw: true}, func(c *Config) {
				c.Queue.Jobs, c.Projects.Limit, c.Projects.PerMinute = 6, []float64{0, 1, 2, 0.5}[seed%4], 60*int(seed%3)
			}),
			rng: rand.New(rand.NewPCG(seed, 3)), now: start,
			held: map[*Job]*pool.Assignment{}, jobs: map[*Job]state{}, seen: seen,
		}
		for range 700 {
			h.now = h.now.Add(time.Duration(h.rng.IntN([]int{20, 200, 2000}[h.rng.IntN(3)])) * time.Millisecond)
			for range 1 + h.rng.IntN(3) { // between two searches
				h.happen()
			}
			h.serve()
			h.move()
			for j := range h.jobs {
				if j.state == waiting && h.now.After(j.GiveUpAt()) {
					require.True(t, h.GiveUp(j))
				}
			}
			h.observe()
		}
		h.close()
	}
	assert.Equal(t, drawn, seen)
}

// happen lets a job arrive or end, or something change at an upstream.
func (h *history) happen() {
	p := h.Pool()
	switch k := h.rng.IntN(20); {
	case k < 4:
		j := h.Begin(Request{Project: uint64(h.rng.IntN(3)), Priority: selection.Priority(h.rng.IntN(2)), Withdraw: withdrawer{}})
		h.jobs[j] = j.state
		h.arrive(j)
	case k < 9 && len(h.order) > 0:
		h.end(h.order[h.rng.IntN(len(h.order))])
	case k < 11:
		p.ReportFailed(h.now, address(h.rng.IntN(2)), health.ErrNoResponse)
	case k == 11:
		p.Checked(h.now, address(4+h.rng.IntN(2)), []error{health.ErrNoResponse, health.ErrNoResponse, nil}[h.rng.IntN(3)])
	case k == 12 && h.rng.IntN(8) == 0: // some upstreams leave, restart, or are about to stop
		var set []pool.Upstream
		for i := range 6 {
			if h.rng.IntN(3) > 0 {
				u := pool.Upstream{Address: address(i), StartedAt: start.Add(time.Duration(h.rng.IntN(2)))}
				if h.rng.IntN(6) == 0 {
					u.StopsAt = h.now.Add(pool.StopNotice + time.Minute)
				}
				set = append(set, u)
			}
		}
		p.Set(h.now, set)
	case k == 13:
		p.Drain(address(h.rng.IntN(6)), h.rng.IntN(3) == 0)
	default:
		i := h.rng.IntN(4)
		h.done[i] += float64(h.rng.IntN(10))
		p.Report(h.now, address(i), pool.Report{
			At: h.now, Running: [2]float64{4, 0}, Stalled: [2]float64{float64(h.rng.IntN(3)) * 90, 0}, Cores: 8, CoresBusy: 4, Completed: h.done[i], Failed: -1, Wait: 1,
		})
	}
	h.observe()
}

// move withdraws the attempts that are to be moved.
func (h *history) move() {
	for _, j := range h.Reconsider(h.now) {
		h.observe()
		if h.rng.IntN(4) == 0 { // too late
			h.CancelMove(h.now, j)
			h.observe()
		} else {
			h.end(j)
		}
	}
	for _, w := range h.Withdrawals(h.now) {
		h.observe()
		switch h.rng.IntN(3) { // in the last case the upstream does not respond yet
		case 0:
			h.end(w.Job)
		case 1:
			h.CancelWithdrawal(h.now, w.Job)
		}
	}
	h.observe()
}

// close ends all jobs. Then nothing is counted anywhere.
func (h *history) close() {
	for len(h.order) > 0 {
		h.end(h.order[0])
	}
	for j := range h.jobs {
		h.GiveUp(j)
	}
	p := h.Pool()
	require.Equal(h.t, []int{0, 0, 0}, []int{p.InFlight(), h.Waiting(), int(h.WaitingBytes())})
	for _, s := range p.States(h.now) {
		require.Zero(h.t, s.InFlight, s.Address)
	}
	for project := range uint64(3) {
		require.Zero(h.t, p.Open(project))
	}
}
