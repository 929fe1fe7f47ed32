package report

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// scene stands in for a Prometheus server and all upstreams. It notes what was
// asked and what was reported.
type scene struct {
	*Prometheus
	answer func(r *http.Request) (*http.Response, error) // nil: answers well at once

	mu       sync.Mutex
	begun    time.Time
	asked    map[string][]time.Duration // since begun, by host and path
	reports  map[string][]pool.Report
	listings map[string][]time.Time
	errs     map[string][]string
}

func newScene(t *testing.T, cacheInterval time.Duration) *scene {
	s := &scene{
		begun: time.Now(), asked: map[string][]time.Duration{},
		reports: map[string][]pool.Report{}, listings: map[string][]time.Time{}, errs: map[string][]string{},
	}
	locked := func(note func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		note()
	}
	c := testConfig()
	c.Source, c.CacheInterval = FromPrometheus, cacheInterval
	c.Prometheus = &Server{URL: "http://prometheus:9090", InstanceLabel: "instance"}
	c.Transport = carrier(func(r *http.Request) (*http.Response, error) {
		locked(func() { s.asked[r.Host+r.URL.Path] = append(s.asked[r.Host+r.URL.Path], time.Since(s.begun)) })
		if s.answer != nil {
			return s.answer(r)
		}
		return s.well(r)
	})
	c.Report = func(address string, r pool.Report) {
		locked(func() { s.reports[address] = append(s.reports[address], r) })
	}
	c.Listing = func(address string, at time.Time, cached pool.CacheSet) {
		assert.True(t, cached.Contains(intake.Key("7")))
		locked(func() { s.listings[address] = append(s.listings[address], at) })
	}
	c.Failed = func(address string, err error) {
		locked(func() { s.errs[address] = append(s.errs[address], err.Error()) })
	}
	p, err := NewPrometheus(c)
	require.NoError(t, err)
	s.Prometheus = p
	return s
}

// well answers as a server that scraped everything a second ago.
func (s *scene) well(r *http.Request) (*http.Response, error) {
	if r.Host != "prometheus:9090" {
		return respond(http.StatusOK, strings.NewReader(`{"projects":[{"id":7}]}`)), nil
	}
	var all []string
	for _, address := range *s.set.Load() {
		now := looked + time.Since(s.begun).Seconds()
		all = append(all, scraped(address, 1, map[string]string{"pilotfish=scraped": fmt.Sprintf("%.3f", now-1)}))
	}
	text := strings.ReplaceAll(vectorOf(all...), fmt.Sprintf("%f", looked), fmt.Sprintf("%f", looked+time.Since(s.begun).Seconds()))
	return respond(http.StatusOK, strings.NewReader(text)), nil
}

// during runs the source while act goes on.
func (s *scene) during(t *testing.T, act func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	act()
	cancel()
	<-done
}

const queryPath = "prometheus:9090/api/v1/query"

func TestRunAsksPrometheusForLoadAndUpstreamsForListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 0)
		all := addresses(5)
		s.during(t, func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Empty(t, s.asked, "without upstreams there is nothing to ask")
			s.Follow(all)
			time.Sleep(600 * time.Second)
		})
		queries := s.asked[queryPath]
		require.InDelta(t, 120, len(queries), 6)
		assert.Less(t, queries[0]-time.Minute, 500*time.Millisecond, "the first comes soon after the first set")
		for i := 2; i < len(queries); i++ {
			gap := queries[i] - queries[i-1]
			require.GreaterOrEqual(t, gap, 4*time.Second)
			require.LessOrEqual(t, gap, 6*time.Second)
		}
		require.Len(t, s.asked, 1+len(all), "nothing else was asked")
		for _, address := range all {
			require.Len(t, s.reports[address], len(queries))
			for i, r := range s.reports[address] {
				require.InDelta(t, (queries[i] - time.Second).Seconds(), r.At.Sub(s.begun).Seconds(), 0.002, "Prometheus tells milliseconds")
			}
			asked := s.asked[address+"/v1/cache/projects"]
			require.InDelta(t, 20, len(asked), 2)
			require.Less(t, asked[0]-time.Minute, 3*time.Second)
			require.Len(t, s.listings[address], len(asked))
			for i, at := range s.listings[address] {
				require.Equal(t, asked[i], at.Sub(s.begun))
			}
			require.Empty(t, s.errs[address])
		}
	})
}

// TestRunOutlivesItsPrometheus has the server hang, and upstreams fail in several ways.
func TestRunOutlivesItsPrometheus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 10*time.Second)
		s.answer = func(r *http.Request) (*http.Response, error) {
			switch r.Host {
			case "prometheus:9090", "hangs:1":
				return nil, after(r, time.Hour)
			case "fails:1":
				return respond(http.StatusInternalServerError, strings.NewReader("")), nil
			case "has-none:1":
				return respond(http.StatusNotFound, strings.NewReader("")), nil
			}
			return s.well(r)
		}
		s.during(t, func() {
			s.Follow([]string{"well:1", "hangs:1", "fails:1", "has-none:1"})
			time.Sleep(500*time.Second + time.Millisecond)
		})
		queries := len(s.asked[queryPath])
		assert.InDelta(t, 100, queries, 5)
		assert.Empty(t, s.reports)
		assert.InDelta(t, 50, len(s.listings["well:1"]), 4)
		assert.Len(t, s.listings, 1)

		told := map[string]map[string]int{}
		for address, errs := range s.errs {
			told[address] = map[string]int{}
			for _, text := range errs {
				told[address][text]++
			}
		}
		for _, address := range []string{"well:1", "hangs:1", "fails:1", "has-none:1"} {
			silent := fmt.Sprintf("upstream %s: metrics: Prometheus: no complete response within 2s", address)
			assert.InDelta(t, queries, told[address][silent], 1, address)
			delete(told[address], silent)
		}
		assert.Empty(t, told["well:1"])
		assert.Empty(t, told["has-none:1"], "an upstream may have no listing")
		assert.InDelta(t, 50, told["fails:1"]["upstream fails:1: cache listing: status 500 Internal Server Error"], 4)
		assert.InDelta(t, 50, told["hangs:1"]["upstream hangs:1: cache listing: no complete response within 2s"], 4)
	})
}

func TestPrometheusFollowsTheNewestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 5*time.Second)
		since := func(address string) (reports, listings int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			defer delete(s.reports, address)
			defer delete(s.listings, address)
			return len(s.reports[address]), len(s.listings[address])
		}
		s.during(t, func() {
			s.Follow([]string{"never:1"})
			s.Follow([]string{"a:1", "b:1"})
			for i := range 100 { // those that stay are not disturbed
				time.Sleep(time.Second)
				s.Follow([]string{"a:1", "b:1", fmt.Sprintf("other-%d:1", i)})
			}
			for _, address := range []string{"a:1", "b:1"} {
				reports, listings := since(address)
				assert.InDelta(t, 20, reports, 3)
				assert.InDelta(t, 20, listings, 3)
			}
			s.Follow([]string{"b:1"})
			time.Sleep(100 * time.Second)
			reports, listings := since("a:1")
			assert.Zero(t, reports+listings)
			reports, _ = since("b:1")
			assert.InDelta(t, 20, reports, 3)

			s.Follow(nil)
			queries := len(s.asked[queryPath])
			time.Sleep(100 * time.Second)
			assert.Len(t, s.asked[queryPath], queries)
			assert.Empty(t, s.reports["never:1"])
		})
		assert.Empty(t, s.errs)
	})
}

func TestRunOfAPrometheusEndsAmidItsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, time.Second)
		s.answer = func(r *http.Request) (*http.Response, error) { return nil, after(r, time.Hour) }
		s.during(t, func() {
			s.Follow(addresses(20))
			time.Sleep(700 * time.Millisecond)
		})
		time.Sleep(time.Hour)
		assert.Len(t, s.asked, 21, "all were under way")
		assert.Empty(t, s.errs, "a poll that is ended has not failed")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 0)
		s.during(t, func() { time.Sleep(time.Second) })
		assert.Empty(t, s.asked, "before the first set")
	})
}
