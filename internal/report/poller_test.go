package report

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// subject is one upstream, polled by hand.
type subject struct {
	*upstreamPoller
	reports []pool.Report
	errs    []error
}

func newSubject(t *testing.T, address string, changes ...func(*Config)) *subject {
	s := &subject{}
	c := testConfig()
	c.Timeout = patience
	for _, change := range changes {
		change(&c)
	}
	c.Report = func(_ string, r pool.Report) { s.reports = append(s.reports, r) }
	c.Failed = func(at string, err error) {
		assert.Equal(t, address, at)
		s.errs = append(s.errs, err)
	}
	p, err := NewPoller(c)
	require.NoError(t, err)
	t.Cleanup(p.client.http.CloseIdleConnections)
	s.upstreamPoller = newUpstreamPoller(p, address)
	return s
}

// once polls, and returns the report, if there was one, and the failure.
func (s *subject) once(t *testing.T) (*pool.Report, error) {
	s.reports, s.errs = nil, nil
	s.poll(t.Context(), false)
	require.LessOrEqual(t, len(s.reports), 1)
	require.LessOrEqual(t, len(s.errs), 1)
	require.NotZero(t, len(s.reports)+len(s.errs), "a poll that ended silently")
	var r *pool.Report
	if len(s.reports) == 1 {
		r = &s.reports[0]
	}
	return r, errors.Join(s.errs...)
}

func TestPollHandsOverAReport(t *testing.T) {
	listing := gzipped(listingOf(100_000))
	s := newSubject(t, upstream(t, nil, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
		assert.Equal(t, "pilotfish", r.Header.Get("User-Agent"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(listing)
	}))
	before := time.Now()
	r, err := s.once(t)
	require.NoError(t, err)
	assert.Equal(t, byPriority(7, 2), r.Stalled)
	assert.Equal(t, byPriority(12, 3), r.Running)
	assert.True(t, r.At.After(before) && r.At.Before(time.Now()), "%v", r.At)
	assert.True(t, math.IsNaN(r.Wait) && math.IsNaN(r.Response), "nothing to compare with yet")
	assert.Equal(t, 100_000, r.Cached.Len())
	found, inside := 0, true
	for id := range 300_000 {
		if r.Cached.Contains(intake.Key(strconv.Itoa(id))) {
			found++
			inside = inside && id >= 100_000 && id < 200_000
		}
	}
	assert.Equal(t, 100_000, found)
	assert.True(t, inside)
}

func TestPollTellsMeansSinceTheReportBefore(t *testing.T) {
	page := goodPage
	s := newSubject(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }, nil))
	_, err := s.once(t)
	require.NoError(t, err)

	page = "garbage\n" // a poll that fails leaves the report before in place
	_, err = s.once(t)
	require.Error(t, err)

	page = change(t, `ruleserver_wait_seconds_sum{priority="low"} 2000`, `ruleserver_wait_seconds_sum{priority="low"} 2030`)
	page = strings.Replace(page, `ruleserver_wait_seconds_count{priority="low"} 1000`, `ruleserver_wait_seconds_count{priority="low"} 1010`, 1)
	page = strings.Replace(page, `ruleserver_execution_seconds_sum{priority="low"} 9000`, `ruleserver_execution_seconds_sum{priority="low"} 9040`, 1)
	page = strings.Replace(page, `ruleserver_execution_seconds_count{priority="low"} 1000`, `ruleserver_execution_seconds_count{priority="low"} 1020`, 1)
	r, err := s.once(t)
	require.NoError(t, err)
	assert.Equal(t, 3.0, r.Wait)
	assert.Equal(t, 5.0, r.Response)

	r, err = s.once(t)
	require.NoError(t, err)
	assert.True(t, math.IsNaN(r.Wait), "no new jobs")

	page = goodPage
	r, err = s.once(t)
	require.NoError(t, err)
	assert.True(t, math.IsNaN(r.Wait) && math.IsNaN(r.Response), "restarted")
}

func TestReportIsOfMidwayToTheHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
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

func TestRunPollsEachAtItsOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
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
		assert.Len(t, phases, len(all), "no two upstreams are first asked at the same time")
		assert.InDelta(t, 2.5, second.Seconds()/float64(len(all)), 1, "the second polls fill the interval")
	})
}

// TestRunIsNotDelayedByAnyUpstream has upstreams fail in all ways that take time.
func TestRunIsNotDelayedByAnyUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
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
			assert.Equal(t, []string{"upstream " + address + ": metrics: no complete response within 2s"}, slices.Compact(f.errs[address]))
		}
		assert.InDelta(t, 100, len(f.reports["drips-listing:1"]), 4)
		assert.Equal(t, []string{"upstream drips-listing:1: cache listing: no complete response within 2s"}, slices.Compact(f.errs["drips-listing:1"]))
	})
}

func TestReportDelaysItsUpstreamOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		quick := 0
		c := testConfig()
		c.Transport = carrier(well)
		c.Report = func(address string, _ pool.Report) {
			if address == "slow:1" {
				<-release
				return
			}
			quick++
		}
		c.Failed = func(_ string, err error) { t.Error(err) }
		p, err := NewPoller(c)
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
	c := testConfig()
	c.Interval, c.Timeout = 50*time.Millisecond, patience
	c.Report = func(address string, _ pool.Report) { pass(reports, address) }
	c.Failed = func(address string, _ error) { pass(failures, address) }
	p, err := NewPoller(c)
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
