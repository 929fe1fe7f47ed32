package executor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// chain returns a job's joblets; equal arguments share them up to the channel.
func chain(project string, version int64, shared, channel string) []Joblet {
	return []Joblet{
		{Key: Key{FeedSource, project, version, ""}},
		{Key: Key{SharedOperators, project, version, shared}},
		{Key: Key{Operators, project, version, shared + "/" + channel}},
		{Key: Key{OutputFeed, project, version, shared + "/" + channel + "/csv"}},
	}
}

func request(p Priority, joblets []Joblet) Request {
	return Request{Priority: p, Chain: joblets, Queue: time.Minute, Evaluate: time.Hour}
}

// oracle is a naive version of the machine: it examines every job at every step. It takes the
// state of the cache from the machine: the cache has its own test.
type oracle struct {
	jobs    []*oracleJob
	running map[Key]bool
}

type oracleJob struct {
	job      *Job
	chain    []Joblet
	at       int // the index of the next joblet it needs
	priority Priority
	started  bool
	err      error
}

func (o *oracle) submit(m *machine, j *Job, r Request) *oracleJob {
	mine := &oracleJob{job: j, chain: r.Chain, priority: r.Priority}
	for i := len(r.Chain) - 1; i >= 0 && mine.at == 0; i-- {
		key := r.Chain[i].Key
		if _, cached := m.cache.get(key); cached {
			mine.at = i + 1
			break
		}
		if o.running[key] {
			mine.at, mine.started = i, true
			break
		}
		for _, other := range o.jobs { // another job waits for it: continue from that joblet
			for k := other.at; k < len(other.chain); k++ {
				if other.chain[k].Key == key {
					mine.at = other.at
					mine.started = o.running[other.chain[other.at].Key]
					i = 0
				}
			}
		}
	}
	mine.started = mine.started || mine.at == len(mine.chain)
	o.jobs = append(o.jobs, mine)
	return mine
}

// next returns the joblet to start on a free core: of all needed joblets that do not run, the
// first by priority, turn and submission. The turns are the machine's.
func (o *oracle) next() (next Key, ok bool) {
	var best *oracleJob
	for _, j := range o.jobs {
		if j.at == len(j.chain) || o.running[j.chain[j.at].Key] {
			continue
		}
		if best == nil || j.priority < best.priority ||
			j.priority == best.priority && j.job.rank.turn.Before(best.job.rank.turn) {
			best = j
		}
	}
	if best == nil {
		return Key{}, false
	}
	return best.chain[best.at].Key, true
}

func (o *oracle) needing(key Key) (jobs []*oracleJob) {
	for _, j := range o.jobs {
		if j.at < len(j.chain) && j.chain[j.at].Key == key {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func (o *oracle) remove(j *oracleJob) {
	o.jobs = slices.DeleteFunc(o.jobs, func(other *oracleJob) bool { return other == j })
}

// TestMachineMatchesOracle applies the same random events to the machine and the oracle, and
// compares every choice and every state.
func TestMachineMatchesOracle(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		cores := 1 + rng.IntN(4)
		m := newMachine(cores, int64(rng.IntN(12))*(entryOverhead+10))
		o := &oracle{running: map[Key]bool{}}
		var busy []*node
		now := epoch
		submitted, left, ended := 0, 0, 0

		for step := range 250 {
			now = now.Add(time.Second)
			where := fmt.Sprintf("seed %d, step %d", seed, step)
			switch event := rng.IntN(10); {
			case event < 4: // a job arrives
				r := request(Priority(rng.IntN(2)), chain(fmt.Sprint(rng.IntN(3)), int64(rng.IntN(2)),
					fmt.Sprint(rng.IntN(2)), fmt.Sprint(rng.IntN(2)))[:1+rng.IntN(4)])
				for i := range r.Chain {
					r.Chain[i].Cores = rng.IntN(6)
				}
				j := m.submit(now, r)
				require.LessOrEqual(t, j.rank.turn.Sub(now), r.Queue*9/10, "%s: no other job overtakes it after this time", where)
				j.request.Queue = time.Duration(rng.IntN(200)) * time.Second
				submitted++
				mine := o.submit(m, j, r)
				require.Equal(t, mine.started, !j.started.IsZero(), where)

			case event < 8 && len(busy) > 0: // a joblet ends
				i := rng.IntN(len(busy))
				n := busy[i]
				busy = slices.Delete(busy, i, i+1)
				key := n.joblet.Key
				var err error
				if rng.IntN(8) == 0 {
					err = errors.New("failed")
				}
				for _, j := range o.needing(key) {
					if j.at++; err != nil {
						j.at, j.err = len(j.chain), err
					}
				}
				delete(o.running, key)
				m.finish(now, n, Result{Value: fmt.Sprint(key), Bytes: 10}, err)

			case len(o.jobs) > 0: // a job is withdrawn, in time or not
				j := o.jobs[rng.IntN(len(o.jobs))]
				expired := j.job.ended.IsZero() && !j.started && now.Sub(j.job.received) >= j.job.request.Queue
				m.expire(now, j.job)
				require.Equal(t, expired, errors.Is(j.job.err, ErrQueueTimeout), where)
				if j.at == len(j.chain) {
					ended++
				}
				m.leave(j.job)
				o.remove(j)
				left++
			}

			for { // free cores start ready joblets
				want, some := o.next()
				free := cores - m.busy
				n := m.start(now)
				if free == 0 || !some {
					require.Nil(t, n, where)
					break
				}
				require.NotNil(t, n, "%s: %v is ready and %d of %d cores are free", where, want, free, cores)
				require.Equal(t, want, n.joblet.Key, where)
				require.Equal(t, min(max(1, n.joblet.Cores), free), n.cores, where)
				o.running[want] = true
				busy = append(busy, n)
				for _, j := range o.needing(want) {
					j.started = true
				}
			}
			checkMachine(t, m, o, where)
			require.Equal(t, submitted, left+len(m.jobs), "%s: conservation", where)
		}
		require.Positive(t, ended, "seed %d: no job ever ended: the test shows nothing", seed)
	}
}

// checkMachine compares the state, and checks the invariants.
func checkMachine(t *testing.T, m *machine, o *oracle, where string) {
	t.Helper()
	load := m.load()
	require.LessOrEqual(t, load.Busy, load.Cores, where)
	held := 0
	for _, n := range m.nodes {
		held += n.cores
		require.Equal(t, n.running, n.cores > 0, where)
	}
	require.Equal(t, held, load.Busy, where)

	var jobsRunning, stalled [priorities]int
	ready := map[Key]Priority{}
	for _, j := range o.jobs {
		require.Equal(t, j.started, !j.job.started.IsZero(), where)
		require.Equal(t, j.at == len(j.chain), !j.job.ended.IsZero(), where)
		require.Equal(t, j.err, j.job.err, where)
		if j.at == len(j.chain) && j.err == nil && j.job.result.Value != nil {
			require.Equal(t, fmt.Sprint(j.chain[len(j.chain)-1].Key), j.job.result.Value, where)
		}
		if j.at == len(j.chain) || o.running[j.chain[j.at].Key] {
			jobsRunning[j.priority]++
			continue
		}
		key := j.chain[j.at].Key
		if p, seen := ready[key]; !seen || j.priority < p {
			ready[key] = j.priority
		}
	}
	for _, p := range ready {
		stalled[p]++
	}
	require.Equal(t, jobsRunning, load.Running, where)
	require.Equal(t, stalled, load.Stalled, "%s: a shared joblet has the best priority of its jobs", where)
	if len(ready) > 0 {
		require.Equal(t, load.Cores, load.Busy, "%s: a joblet is stalled and a core is free", where)
	}

	for key, n := range m.nodes {
		require.Equal(t, key, n.joblet.Key, where)
		require.True(t, n.running || len(n.jobs) > 0, "%s: no job needs %v", where, key)
	}
}

// The machine uses the learned duration of a project's jobs, and for a new project the sender's Expected. With Unlearned,
// it always uses Expected.
func TestShortJobsGoFirst(t *testing.T) {
	for onlyExpected, want := range map[bool][]string{
		false: {"new and short", "short", "new and long", "long"},
		true:  {"long", "new and short", "new and long", "short"},
	} {
		m := newMachine(1, 0)
		now := epoch
		run := func(took time.Duration) string {
			n := m.start(now)
			now = now.Add(took)
			m.finish(now, n, Result{}, nil)
			return n.joblet.Key.Project
		}
		submit := func(project string, expected time.Duration) {
			r := request(Low, chain(project, 1, "", "")[:2])
			r.Expected, r.Unlearned = expected, onlyExpected
			m.submit(now, r)
		}
		for project, took := range map[string]time.Duration{"long": 10 * time.Second, "short": time.Second / 10} {
			submit(project, 0)
			run(took)
			run(took)
		}
		submit("long", time.Millisecond)
		submit("new and long", 800*time.Millisecond)
		submit("new and short", time.Millisecond)
		submit("short", time.Hour)
		var order []string
		for range 8 {
			order = append(order, run(time.Millisecond))
		}
		assert.Equal(t, want, slices.Compact(order))
	}
}

// A job that runs longer than expected is overtaken before its next joblet, except with Unlearned and without Expected.
func TestLateJobsAreOvertaken(t *testing.T) {
	for next, r := range map[string]Request{"long": {Unlearned: true}, "other": {Unlearned: true, Expected: time.Millisecond}, "other ": {Expected: time.Millisecond}} {
		m := newMachine(1, 0)
		r.Priority, r.Queue, r.Chain = Low, time.Minute, chain("long", 1, "", "")[:2]
		m.submit(epoch, r)
		first := m.start(epoch)
		r.Expected, r.Chain = 200*r.Expected, chain("other", 1, "", "")[:1]
		m.submit(epoch.Add(time.Second), r)
		m.finish(epoch.Add(time.Second), first, Result{}, nil)
		assert.Equal(t, strings.TrimSpace(next), m.start(epoch.Add(time.Second)).joblet.Key.Project)
	}
}

// TestFloodWaitsBehindOthers: of equally long jobs, one of another project runs before those of a project with many.
func TestFloodWaitsBehindOthers(t *testing.T) {
	m := newMachine(1, 0)
	submit := func(project string, version int64) {
		r := request(Low, chain(project, version, "", "")[:1])
		r.Expected = time.Second
		m.submit(epoch, r)
	}
	submit("flood", 0)
	m.finish(epoch, m.start(epoch), Result{}, nil) // it is no longer counted
	for version := range int64(3) {
		submit("flood", 1+version)
	}
	submit("other", 0)
	order := ""
	for n := m.start(epoch); n != nil; n = m.start(epoch) {
		order += " " + n.joblet.Key.Project
		m.finish(epoch, n, Result{}, nil)
	}
	assert.Equal(t, " flood other flood flood", order)
}

// TestFactsOfAFetch: the job that causes a fetch has its duration; a job that joins the fetch
// records only that the data was not cached; a later job finds it cached.
func TestFactsOfAFetch(t *testing.T) {
	m := newMachine(1, 1<<20)
	causes := m.submit(epoch, request(Low, chain("p", 1, "", "a")))
	n := m.start(epoch.Add(time.Second))
	joins := m.submit(epoch.Add(2*time.Second), request(High, chain("p", 1, "", "b")))
	m.finish(epoch.Add(5*time.Second), n, Result{}, nil)
	finds := m.submit(epoch.Add(6*time.Second), request(High, chain("p", 1, "", "c")))

	assert.Equal(t, Facts{Started: true, Wait: time.Second, Fetch: 4 * time.Second}, causes.facts())
	assert.Equal(t, Facts{Started: true}, joins.facts())
	assert.Equal(t, Facts{Cached: true}, finds.facts())
}
