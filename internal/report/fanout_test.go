package report

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// fleet stands in for all upstreams of a Poller. It notes when each was asked and
// what was reported.
type fleet struct {
	*Poller
	answer func(r *http.Request) (*http.Response, error) // nil: answers well at once

	mu      sync.Mutex
	begun   time.Time
	asked   map[string][]time.Duration // since begun
	asking  map[string]int
	reports map[string][]pool.Report
	errs    map[string][]string
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{
		begun: time.Now(),
		asked: map[string][]time.Duration{}, asking: map[string]int{},
		reports: map[string][]pool.Report{}, errs: map[string][]string{},
	}
	c := testConfig()
	c.Transport, c.Report, c.Failed = carrier(f.roundTrip), f.report, f.fail
	p, err := NewPoller(c)
	require.NoError(t, err)
	f.Poller = p
	return f
}

func (f *fleet) roundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.Host
	f.mu.Lock()
	f.asking[address]++
	if f.asking[address] > 1 {
		panic("two polls of one upstream at once")
	}
	if r.URL.Path == "/metrics" {
		f.asked[address] = append(f.asked[address], time.Since(f.begun))
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.asking[address]--
		f.mu.Unlock()
	}()
	if f.answer != nil {
		return f.answer(r)
	}
	return well(r)
}

func (f *fleet) report(address string, r pool.Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reports[address] = append(f.reports[address], r)
}

func (f *fleet) fail(address string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs[address] = append(f.errs[address], err.Error())
}

// during runs the poller while act goes on.
func (f *fleet) during(t *testing.T, act func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	act()
	cancel()
	<-done
}

func TestFollowReplacesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		polls := func() map[string]int {
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			counts := map[string]int{}
			for address, asked := range f.asked {
				counts[address] = len(asked)
			}
			clear(f.asked)
			return counts
		}
		f.Follow([]string{"never:1"})
		f.Follow([]string{"a:1", "b:1", "a:1"}) // before Run
		f.during(t, func() {
			time.Sleep(100 * time.Second)
			counts := polls()
			assert.Len(t, counts, 2)
			assert.InDelta(t, 20, counts["a:1"], 3)
			assert.InDelta(t, 20, counts["b:1"], 3)

			f.Follow([]string{"b:1", "c:1"})
			time.Sleep(100 * time.Second)
			counts = polls()
			assert.Len(t, counts, 2)
			assert.InDelta(t, 20, counts["b:1"], 3)
			assert.InDelta(t, 20, counts["c:1"], 3)

			f.Follow(nil)
			time.Sleep(100 * time.Second)
			assert.Empty(t, polls())

			f.Follow([]string{"a:1"})
			time.Sleep(100 * time.Second)
			assert.InDelta(t, 20, polls()["a:1"], 3)
		})
		f.Follow([]string{"late:1"})
		f.Follow([]string{"later:1"})
		time.Sleep(100 * time.Second)
		assert.Empty(t, polls(), "Run has ended")
	})
}

// TestFollowDoesNotDisturbThoseThatStay replaces the set often. The upstream that
// is in every set must be polled as if nothing had happened.
func TestFollowDoesNotDisturbThoseThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.during(t, func() {
			for i := range 1000 {
				f.Follow([]string{"a:1", fmt.Sprintf("other-%d:1", i)})
				time.Sleep(100 * time.Millisecond)
			}
		})
		assert.InDelta(t, 20, len(f.asked["a:1"]), 3)
	})
}

func TestThoseThatLeaveStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		gaveUp := 0
		f.answer = func(r *http.Request) (*http.Response, error) {
			err := after(r, time.Second)
			if err != nil {
				gaveUp++
				return nil, err
			}
			return well(r)
		}
		f.during(t, func() {
			f.Follow([]string{"a:1"})
			time.Sleep(600 * time.Millisecond)
			synctest.Wait()
			assert.Len(t, f.asked["a:1"], 1, "a poll is under way")
			f.Follow(nil)
			f.Follow([]string{"b:1"})
			synctest.Wait()
			assert.Equal(t, 1, gaveUp)
			f.Follow([]string{"a:1"}) // back again; roundTrip panics if it were polled twice at once
			time.Sleep(20 * time.Second)
		})
		assert.Empty(t, f.errs["a:1"], "an upstream that leaves has not failed")
		assert.NotEmpty(t, f.reports["a:1"])
	})
}

func TestRunEndsAmidPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.answer = func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/metrics" {
				return respond(http.StatusOK, &slow{r: r, text: goodPage, chunk: 100, pause: 10 * time.Millisecond}), nil
			}
			return nil, after(r, time.Hour)
		}
		f.during(t, func() {
			f.Follow(addresses(100))
			time.Sleep(500 * time.Millisecond) // some wait, some read metrics, some hang in the listing
		})
		time.Sleep(time.Hour)
		assert.NotEmpty(t, f.asked)
		assert.Empty(t, f.reports)
		assert.Empty(t, f.errs, "a poll that is ended has not failed")
	})
}
