package balancer_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/balancing"
	"example.org/pilotfish/test/dump"
)

// The hints and ends of a lease reach the pool and the dispatcher, and changes of the pool the
// hooks.
func TestLeaseUpdatesThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answered, members []string
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{
			Answered: func(_ time.Time, j *dispatch.Job, c pool.Choice, _ *pool.Hint) {
				answered = append(answered, c.Address)
			},
			Joined: func(addresses []string) { members = append(members, fmt.Sprint("joined ", addresses)) },
			Gone:   func(addresses []string) { members = append(members, fmt.Sprint("gone ", addresses)) },
		})
		b.Set([]pool.Upstream{{Address: address(0)}})
		assert.Equal(t, []string{"joined [10.0.0.0:9000]"}, members, "nobody joins or leaves a set that stays")
		state := func(i int) pool.State { return b.States()[i] }
		load(b, 0, 0)
		l := claimed(t, b, dispatch.Request{Project: 7})
		time.Sleep(2 * time.Second)
		l.Answered(time.Now(), true, &pool.Hint{At: time.Now(), Running: [2]float64{3, 0}, Waited: -1, Fetched: -1})
		assert.Equal(t, []string{address(0)}, answered)
		assert.Equal(t, 2.0, state(0).Latency)
		assert.Equal(t, 3.0, state(0).Running)
		time.Sleep(time.Second)
		l.Hinted(time.Now(), &pool.Hint{At: time.Now(), Running: [2]float64{4, 0}, Waited: -1, Fetched: -1})
		assert.Equal(t, 4.0, state(0).Running)

		b.Set([]pool.Upstream{{Address: address(0)}, {Address: address(1)}})
		b.Listing(address(1), time.Now(), listing{7: true})
		ranked, err := b.Explain(pool.Request{Project: 7})
		require.NoError(t, err)
		for _, r := range ranked {
			assert.Equal(t, map[string]string{address(0): "assumed", address(1): "cached"}[r.Address], r.Cache)
		}
		l.Move(time.Now(), address(1))
		assert.Equal(t, []any{address(1), selection.Cached, 0, 1}, []any{l.Address, l.Cache, state(0).InFlight, state(1).InFlight})
		l.Move(time.Now(), "10.0.0.9:9000")
		inFlight, _ := b.Counts()
		assert.Equal(t, []any{"10.0.0.9:9000", selection.NotCached, 0}, []any{l.Address, l.Cache, inFlight}, "nobody knows it")
		l.Done(time.Now(), pool.Answered)
		b.Set(nil)
		assert.Equal(t, "gone [10.0.0.0:9000 10.0.0.1:9000]", members[len(members)-1])
		assert.False(t, b.Ready())
	})
}

// The open jobs, and a job's state at an upstream, as the admin port shows them.
func TestOpenJobsAndProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
		var last *balancer.Lease
		for _, r := range []dispatch.Request{
			{ID: "x", Project: 1, Name: "one", Facts: &intake.Facts{Session: "s", Project: "one"}},
			{ID: "y", Priority: selection.High}, {Project: 3, Name: "two"}, {Project: 3, Name: "two"}, {Project: 2, Name: "a"},
		} {
			last = claimed(t, b, r)
			time.Sleep(time.Second)
		}
		assert.Equal(t, []balancer.Open{
			{ID: "x", Session: "s", Project: "one", Priority: "low", Seconds: 5, Upstream: address(0), UpstreamSeconds: 5},
			{ID: "y", Priority: "high", Seconds: 4, Upstream: address(0), UpstreamSeconds: 4},
		}, b.Open(2))
		assert.Equal(t, []dispatch.ProjectLoad{{Name: "two", InFlight: 2}, {Name: "a", InFlight: 1}}, b.Projects(time.Now(), 2))
		last.Failed(time.Now(), dispatch.Failure{Outcome: pool.Refused, ConnectTimedOut: true})
		assert.Equal(t, "a connection timed out", b.States()[0].Breaker.Why)
	})
}

// The clock is read before the mutex is locked, so events can get the mutex in another order than their times.
func TestTimeDoesNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
		before := time.Now()
		time.Sleep(time.Second)
		later := time.Now()
		first, err := b.Claim(t.Context(), later, b.Begin(dispatch.Request{}))
		require.NoError(t, err)
		second, err := b.Claim(t.Context(), before, b.Begin(dispatch.Request{}))
		require.NoError(t, err)
		assert.Equal(t, []time.Time{later, later}, []time.Time{first.Claimed, second.Claimed})
		first.Answered(before, true, nil)
		assert.Zero(t, b.States()[0].Latency, "and not a second less")
		first.Done(before, pool.Answered)
		second.Done(later, pool.Answered)
	})
}

// A response can start just after its job was withdrawn. The claim of the other upstream then
// ends.
func TestWithdrawalAfterTheResponseStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 2, dispatch.DefaultQueue(), balancer.Hooks{})
		load(b, 0, 0)
		load(b, 1, 1000)
		withdrawn := make(withdrawal, 1)
		l := claimed(t, b, dispatch.Request{Withdraw: withdrawn})
		load(b, 1, 0)
		balancing.Hang(b, address(0))
		inFlight, _ := b.Counts()
		assert.Equal(t, []int{1, 2}, []int{len(withdrawn), inFlight}, "it counts at both places")
		l.Answered(time.Now(), true, nil)
		inFlight, _ = b.Counts()
		assert.Equal(t, 1, inFlight)
		l.Done(time.Now(), pool.Answered)
	})
}

// A queued job can get an upstream and be moved to another just as its submitter disconnects. Both claims end.
func TestAJobThatLeavesAsItIsMoved(t *testing.T) {
	for range 64 { // it is random whether the disconnect or the grant is handled first
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			var b *balancer.Balancer
			b = newBalancer(t, 2, dispatch.DefaultQueue(), balancer.Hooks{Queued: func(selection.Priority) {
				load(b, 0, 0)
				load(b, 1, 0)
				balancing.Hang(b, address(0))
				leave()
			}})
			load(b, 0, 1000)
			load(b, 1, 1000)
			l, err := claim(ctx, b, dispatch.Request{Withdraw: make(withdrawal, 1)})
			if err == nil {
				l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Gone})
			}
			inFlight, _ := b.Counts()
			assert.Zero(t, inFlight)
		})
	}
}

// listing is a cache of projects.
type listing map[uint64]bool

func (l listing) Contains(project uint64) bool { return l[project] }
func (listing) Bytes(uint64) float64           { return 0 }
func (l listing) Len() int                     { return len(l) }

// A lease's holder reads its upstream while discovery changes that upstream.
// Only the race detector can detect a fault here.
func TestALeaseIsReadWhileTheSetChanges(t *testing.T) {
	b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				l, err := claim(t.Context(), b, dispatch.Request{})
				if assert.NoError(t, err) {
					assert.Equal(t, address(0), l.Address)
					l.Done(time.Now(), pool.Answered)
				}
			}
		})
	}
	for i := range 2000 {
		b.Set([]pool.Upstream{{Address: address(0), Weight: float64(i + 1)}})
	}
	wg.Wait()
}

// Queries change neither the balancer nor its dispatcher and pool, apart from memory that is used again and the time of the
// last event.
func TestQueriesChangeNoField(t *testing.T) {
	commands := []string{
		"Begin", "CacheChanged", "Checked", "Claim", "Dismiss", "Drain", "Listing", "Report", "ReportFailed", "Run", "Set", "SetLengths", "SetSettings",
	}
	queries := map[string]func(b *balancer.Balancer){
		"Counts":   func(b *balancer.Balancer) { b.Counts() },
		"Explain":  func(b *balancer.Balancer) { _, _ = b.Explain(pool.Request{Project: 7}) },
		"Holders":  func(b *balancer.Balancer) { b.Holders([]uint64{7, 8}) },
		"Lengths":  func(b *balancer.Balancer) { b.Lengths() },
		"Open":     func(b *balancer.Balancer) { b.Open(10) },
		"Projects": func(b *balancer.Balancer) { b.Projects(time.Now(), 10) },
		"Queue":    func(b *balancer.Balancer) { b.Queue(time.Now()) },
		"Ready":    func(b *balancer.Balancer) { b.Ready() },
		"States":   func(b *balancer.Balancer) { b.States() },
	}
	for of, i := reflect.TypeFor[*balancer.Balancer](), 0; i < of.NumMethod(); i++ {
		name := of.Method(i).Name
		_, isQuery := queries[name]
		assert.NotEqual(t, isQuery, slices.Contains(commands, name), "%s is either a query or a command", name)
	}
	state := func(b *balancer.Balancer) string {
		return dump.Of(b, "Balancer.latest", "Pool.scratch", "acceptance.counts", "projectState.shortlist", "projectState.shortlistSet")
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 3, dispatch.DefaultQueue(), balancer.Hooks{})
		for i := range 3 {
			load(b, i, float64(i))
		}
		b.Listing(address(1), time.Now(), listing{7: true})
		for project := range uint64(4) {
			l := claimed(t, b, dispatch.Request{Project: 7 + project%2})
			if project%2 == 0 {
				l.Answered(time.Now(), true, nil)
				l.Done(time.Now(), pool.Answered)
			}
		}
		for name, query := range queries {
			for range 2 {
				before := state(b)
				query(b)
				require.Equal(t, before, state(b), name)
				time.Sleep(10 * time.Second)
			}
		}
	})
}
