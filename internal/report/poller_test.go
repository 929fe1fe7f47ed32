package report

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// fleet plays all upstreams, and notes when each was asked and what was handed over.
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

func newFleet(t *testing.T, c Config) *fleet {
	f := &fleet{
		begun: time.Now(),
		asked: map[string][]time.Duration{}, asking: map[string]int{},
		reports: map[string][]pool.Report{}, errs: map[string][]string{},
	}
	c.Transport = carrier(f.roundTrip)
	p, err := New(c, rand.New(rand.NewPCG(11, 12)), f.sink, f.fail)
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

func well(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/metrics" {
		return respond(http.StatusOK, strings.NewReader(goodPage)), nil
	}
	return respond(http.StatusNotFound, strings.NewReader("")), nil
}

// after waits in the bubble's time, or until the request is given up.
func after(r *http.Request, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

func (f *fleet) sink(address string, r pool.Report) {
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

func addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.0.%d:9001", i+1)
	}
	return all
}

func TestRunPollsEachAtItsOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Config{})
		all := addresses(20)
		f.during(t, func() {
			f.Follow(all)
			time.Sleep(500 * time.Second)
		})
		phases := map[time.Duration]bool{}
		var second time.Duration
		for _, address := range all {
			asked := f.asked[address]
			require.InDelta(t, 100, len(asked), 4)
			require.Less(t, asked[0], 500*time.Millisecond, "the first comes soon")
			require.Less(t, asked[1]-asked[0], 5*time.Second)
			for i := 2; i < len(asked); i++ {
				gap := asked[i] - asked[i-1]
				require.GreaterOrEqual(t, gap, 4*time.Second)
				require.LessOrEqual(t, gap, 6*time.Second)
			}
			require.Len(t, f.reports[address], len(asked))
			require.Empty(t, f.errs[address])
			phases[asked[0]] = true
			second += asked[1] - asked[0]
		}
		assert.Len(t, phases, len(all), "no two begin together")
		assert.InDelta(t, 2.5, second.Seconds()/float64(len(all)), 1, "phases fill the interval")
	})
}

func TestReportIsOfMidwayToTheHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Config{})
		f.answer = func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/metrics" {
				return well(r)
			}
			if err := after(r, 300*time.Millisecond); err != nil {
				return nil, err
			}
			body := &slow{r: r, text: goodPage, chunk: len(goodPage) / 2, pause: 400 * time.Millisecond}
			return respond(http.StatusOK, body), nil
		}
		f.during(t, func() {
			f.Follow([]string{"a:1"})
			time.Sleep(10 * time.Second)
		})
		require.NotEmpty(t, f.reports["a:1"])
		for i, r := range f.reports["a:1"] {
			assert.Equal(t, f.asked["a:1"][i]+150*time.Millisecond, r.At.Sub(f.begun))
		}
	})
}

// slow is a body that comes in chunks, with a pause before each.
type slow struct {
	r     *http.Request
	text  string
	chunk int
	pause time.Duration
}

func (s *slow) Read(into []byte) (int, error) {
	if err := after(s.r, s.pause); err != nil {
		return 0, err
	}
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(into, s.text[:min(s.chunk, len(s.text))])
	s.text = s.text[n:]
	return n, nil
}

// TestRunIsHeldUpByNobody has upstreams fail in all ways that take time.
func TestRunIsHeldUpByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Config{})
		f.answer = func(r *http.Request) (*http.Response, error) {
			switch r.URL.Host {
			case "hangs:1":
				return nil, after(r, time.Hour)
			case "drips:1":
				return respond(http.StatusOK, &slow{r: r, text: goodPage, chunk: 1, pause: time.Second}), nil
			case "drips-listing:1":
				if r.URL.Path != "/metrics" {
					return respond(http.StatusOK, &slow{r: r, text: `{"projects":[]}`, chunk: 1, pause: time.Second}), nil
				}
			}
			return well(r)
		}
		f.during(t, func() {
			f.Follow([]string{"hangs:1", "drips:1", "drips-listing:1", "well:1"})
			time.Sleep(500 * time.Second)
		})
		for address, asked := range f.asked {
			assert.InDelta(t, 100, len(asked), 4, address)
		}
		assert.Len(t, f.reports["well:1"], len(f.asked["well:1"]))
		assert.Empty(t, f.errs["well:1"])
		for _, address := range []string{"hangs:1", "drips:1"} {
			assert.Empty(t, f.reports[address])
			assert.Equal(t, []string{"upstream " + address + ": metrics: no whole answer within 2s"}, slices.Compact(f.errs[address]))
		}
		assert.InDelta(t, 100, len(f.reports["drips-listing:1"]), 4)
		assert.Equal(t, []string{"upstream drips-listing:1: cache listing: no whole answer within 2s"}, slices.Compact(f.errs["drips-listing:1"]))
	})
}

func TestSinkHoldsUpItsUpstreamOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		quick := 0
		p, err := New(Config{Transport: carrier(well)}, rand.New(rand.NewPCG(1, 2)), func(address string, _ pool.Report) {
			if address == "slow:1" {
				<-release
				return
			}
			quick++
		}, func(_ string, err error) { t.Error(err) })
		require.NoError(t, err)
		f := &fleet{Poller: p}
		f.during(t, func() {
			p.Follow([]string{"slow:1", "quick:1"})
			time.Sleep(100 * time.Second)
			synctest.Wait()
			assert.Greater(t, quick, 15)
			close(release)
		})
	})
}

func TestFollowReplacesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Config{})
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

// TestFollowDoesNotDisturbThoseThatStay sets the same upstreams anew all the
// time, which must neither begin nor forget anything.
func TestFollowDoesNotDisturbThoseThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Config{})
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
		f := newFleet(t, Config{})
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
		assert.Empty(t, f.errs["a:1"], "to leave is no failure")
		assert.NotEmpty(t, f.reports["a:1"])
	})
}

func TestRunEndsAmidPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Config{})
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
		assert.Empty(t, f.errs, "to end is no failure")
	})
}

// TestRunWithRealUpstreams has one good upstream among bad ones, on real sockets.
func TestRunWithRealUpstreams(t *testing.T) {
	bad := []string{
		upstream(t, hang, nil),
		upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, nil),
		"127.0.0.1:1",
	}
	good := upstream(t, nil, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(listingOf(1000)) })

	ctx, cancel := context.WithCancel(t.Context())
	reports, failures := make(chan string), make(chan string)
	pass := func(into chan string, address string) {
		select {
		case into <- address:
		case <-ctx.Done():
		}
	}
	p, err := New(Config{Interval: 50 * time.Millisecond, Timeout: time.Minute}, rand.New(rand.NewPCG(1, 2)),
		func(address string, _ pool.Report) { pass(reports, address) },
		func(address string, _ error) { pass(failures, address) })
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	p.Follow(append(bad, good))
	failed := map[string]bool{}
	for got := 0; got < 5 || len(failed) < 2; {
		select {
		case address := <-reports:
			assert.Equal(t, good, address)
			got++
		case address := <-failures:
			failed[address] = true
		}
	}
	cancel()
	<-done
	assert.Equal(t, map[string]bool{bad[1]: true, bad[2]: true}, failed)
}
