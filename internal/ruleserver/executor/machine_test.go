package executor

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

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// chain is a job's joblets; equal arguments share them up to the channel.
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

// oracle does what the machine does in the plainest way: it looks at every job
// at every step. What is cached it asks the machine, whose cache has a test of
// its own.
type oracle struct {
	jobs    []*oracleJob
	running map[Key]bool
}

type oracleJob struct {
	job      *job
	chain    []Joblet
	at       int // the index of the next joblet it needs
	priority Priority
	started  bool
}

func (o *oracle) submit(m *machine, j *job, r Request) *oracleJob {
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
		for _, other := range o.jobs { // somebody waits for it: go on from where that one is
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

// next is the joblet that must start on a free core: the first, by priority and
// then by submission, of all that are needed and do not run.
func (o *oracle) next() (next Key, ok bool) {
	for _, p := range Priorities() {
		for _, j := range o.jobs {
			if j.priority == p && j.at < len(j.chain) && !o.running[j.chain[j.at].Key] {
				return j.chain[j.at].Key, true
			}
		}
	}
	return Key{}, false
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

// TestMachineMatchesOracle drives the machine and the oracle through the same
// random events, and compares every choice and every state.
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
			case event < 4: // a job comes
				r := request(Priorities()[rng.IntN(2)], chain(fmt.Sprint(rng.IntN(3)), int64(rng.IntN(2)),
					fmt.Sprint(rng.IntN(2)), fmt.Sprint(rng.IntN(2)))[:1+rng.IntN(4)])
				j := m.submit(now, r)
				j.request.Queue = time.Duration(rng.IntN(200)) * time.Second
				submitted++
				mine := o.submit(m, j, r)
				require.Equal(t, mine.started, !j.started.IsZero(), where)
				require.Equal(t, mine.at == len(mine.chain), !j.ended.IsZero(), where)

			case event < 8 && len(busy) > 0: // a joblet ends
				i := rng.IntN(len(busy))
				n := busy[i]
				busy = slices.Delete(busy, i, i+1)
				key := n.joblet.Key
				var err error
				if rng.IntN(8) == 0 {
					err = errors.New("failed")
				}
				waiting := o.needing(key)
				delete(o.running, key)
				var want []*job
				for _, j := range waiting {
					if j.at++; err != nil || j.at == len(j.chain) {
						want = append(want, j.job)
						j.at = len(j.chain)
					}
				}
				got := m.finish(now, n, Result{Value: fmt.Sprint(key), Bytes: 10}, err)
				require.Equal(t, want, got, where)
				for _, j := range got {
					require.Equal(t, err, j.err, where)
					if err == nil {
						require.Equal(t, fmt.Sprint(j.request.Chain[len(j.request.Chain)-1].Key), j.result.Value, where)
					}
				}
				ended += len(got)

			case len(o.jobs) > 0: // a job leaves, in time or not
				j := o.jobs[rng.IntN(len(o.jobs))]
				expired := j.job.ended.IsZero() && !j.started && now.Sub(j.job.received) >= j.job.request.Queue
				m.expire(now, j.job)
				require.Equal(t, expired, errors.Is(j.job.err, ErrQueueTimeout), where)
				m.leave(j.job)
				o.remove(j)
				left++
			}

			for { // free cores take what is ready
				want, some := o.next()
				n, started := m.start(now)
				if len(busy) == cores || !some {
					require.Nil(t, n, where)
					break
				}
				require.NotNil(t, n, "%s: %v is ready and %d of %d cores are busy", where, want, len(busy), cores)
				require.Equal(t, want, n.joblet.Key, where)
				o.running[want] = true
				busy = append(busy, n)
				var newly []*job
				for _, j := range o.needing(want) {
					if !j.started {
						newly = append(newly, j.job)
					}
					j.started = true
				}
				require.Equal(t, newly, started, where)
			}
			checkMachine(t, m, o, where)
			require.Equal(t, submitted, left+len(m.jobs), "%s: conservation", where)
		}
		require.Positive(t, ended, "seed %d: no job ever ended: the test says nothing", seed)
	}
}

// checkMachine compares the whole state, and holds it against the invariants.
func checkMachine(t *testing.T, m *machine, o *oracle, where string) {
	t.Helper()
	load := m.load()
	require.LessOrEqual(t, load.Busy, load.Cores, where)
	require.Equal(t, len(o.running), load.Busy, where)

	var jobsRunning, stalled [priorities]int
	ready := map[Key]Priority{}
	for _, j := range o.jobs {
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

	started, completed := uint64(0), uint64(0)
	for p := range load.Totals.Started {
		for k := range load.Totals.Started[p] {
			started += load.Totals.Started[p][k]
			completed += load.Totals.Completed[p][k]
		}
	}
	require.Equal(t, started, completed+uint64(load.Busy), "%s: what starts completes", where)
	for key, n := range m.nodes {
		require.Equal(t, key, n.joblet.Key, where)
		require.True(t, n.state == running || len(n.jobs) > 0, "%s: nobody needs %v", where, key)
	}
}

// TestSharedJobletTakesBestPriority: a high job that joins a stalled low joblet
// lends it its priority, and takes it along when it leaves.
func TestSharedJobletTakesBestPriority(t *testing.T) {
	m := newMachine(1, 0)
	m.submit(epoch, request(Low, chain("busy", 1, "", "")))
	m.start(epoch)
	m.submit(epoch, request(Low, chain("first", 1, "", "")))
	m.submit(epoch, request(Low, chain("shared", 1, "", "")))
	high := m.submit(epoch, request(High, chain("shared", 1, "", "")))
	assert.Equal(t, "shared", m.ready[0].joblet.Key.Project)
	assert.Equal(t, [priorities]int{High: 1, Low: 1}, m.load().Stalled)
	m.leave(high)
	assert.Equal(t, "first", m.ready[0].joblet.Key.Project)
	assert.Equal(t, [priorities]int{Low: 2}, m.load().Stalled)
}

// TestThesisFigure2: three jobs of one project, two of them with the same shared
// rules, need one FeedSource and two SharedOperators.
func TestThesisFigure2(t *testing.T) {
	m := newMachine(16, 1<<20)
	for _, c := range [][2]string{{"a", "1"}, {"b", "2"}, {"b", "3"}} {
		m.submit(epoch, request(Low, chain("p", 1, c[0], c[1])))
	}
	for {
		n, _ := m.start(epoch)
		if n == nil {
			break
		}
		m.finish(epoch, n, Result{}, nil)
	}
	assert.Equal(t, [kinds]uint64{FeedSource: 1, SharedOperators: 2, Operators: 3, OutputFeed: 3}, m.totals.Completed[Low])
}

// TestFactsOfAFetch: the job that causes a fetch knows how long it took; one that
// joins knows only that the data was not there; a later one finds it.
func TestFactsOfAFetch(t *testing.T) {
	m := newMachine(1, 1<<20)
	causes := m.submit(epoch, request(Low, chain("p", 1, "", "a")))
	n, _ := m.start(epoch.Add(time.Second))
	joins := m.submit(epoch.Add(2*time.Second), request(High, chain("p", 1, "", "b")))
	m.finish(epoch.Add(5*time.Second), n, Result{}, nil)
	finds := m.submit(epoch.Add(6*time.Second), request(High, chain("p", 1, "", "c")))

	assert.Equal(t, Facts{Started: true, Wait: time.Second, Fetch: 4 * time.Second}, causes.facts())
	assert.Equal(t, Facts{Started: true}, joins.facts())
	assert.Equal(t, Facts{Cached: true}, finds.facts())
}

// TestEvaluateTimeout counts from the start of the first joblet.
func TestEvaluateTimeout(t *testing.T) {
	m := newMachine(1, 0)
	j := m.submit(epoch, Request{Chain: chain("p", 1, "", ""), Queue: time.Minute, Evaluate: 10 * time.Second})
	n, _ := m.start(epoch.Add(30 * time.Second))
	m.expire(epoch.Add(40*time.Second-1), j)
	assert.NoError(t, j.err)
	m.expire(epoch.Add(40*time.Second), j)
	assert.ErrorIs(t, j.err, ErrEvaluateTimeout)
	assert.Equal(t, 1, m.load().Busy, "a joblet that runs is not interrupted")
	assert.Empty(t, m.finish(epoch.Add(50*time.Second), n, Result{}, nil))
	assert.Zero(t, m.load().Busy)
}
