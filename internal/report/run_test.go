package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
)

// Events of an upstream's cache are read as long as the upstream is in the set, independently of
// the source of its reports.
func TestEventsAreFollowed(t *testing.T) {
	for _, prometheus := range []string{"", "http://prometheus:9090"} {
		synctest.Test(t, func(t *testing.T) {
			var followed sync.Map
			f := newFleet(t, func(c *Config) {
				c.Prometheus, c.CachePath = prometheus, none
				c.Follow = func(ctx context.Context, address string) {
					followed.Store(address, true)
					<-ctx.Done()
					followed.Delete(address)
				}
			})
			f.during(t, func() {
				f.Follow([]string{"a:1", "b:1"})
				synctest.Wait()
				assert.Equal(t, map[any]any{"a:1": true, "b:1": true}, maps.Collect(followed.Range))
				f.Follow([]string{"b:1"})
				synctest.Wait()
				assert.Equal(t, map[any]any{"b:1": true}, maps.Collect(followed.Range))
			})
			assert.Empty(t, maps.Collect(followed.Range))
		})
	}
}

func TestFollowReplacesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.Follow([]string{"never:1"})
		f.Follow([]string{"a:1", "b:1", "a:1"}) // before Run
		polled := func(addresses ...string) {
			t.Helper()
			time.Sleep(100 * time.Second)
			counts := f.polls()
			assert.Len(t, counts, len(addresses))
			for _, address := range addresses {
				assert.InDelta(t, 20, counts[address], 3, address)
			}
		}
		f.during(t, func() {
			polled("a:1", "b:1")
			f.Follow([]string{"b:1", "c:1"})
			polled("b:1", "c:1")
			f.Follow(nil)
			polled()
			f.Follow([]string{"a:1"})
			polled("a:1")
			for i := range 1000 { // polling of the remaining upstreams is unaffected
				f.Follow([]string{"a:1", fmt.Sprintf("other-%d:1", i)})
				time.Sleep(100 * time.Millisecond)
			}
			assert.InDelta(t, 20, f.polls()["a:1"], 3)
		})
		f.Follow([]string{"late:1"})
		f.Follow([]string{"later:1"})
		polled() // Run has ended
	})
}

func TestRemovedUpstreamsAreNotPolled(t *testing.T) {
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
			f.Follow([]string{"a:1"}) // added again; roundTrip panics if it were polled twice at once
			time.Sleep(20 * time.Second)
		})
		assert.Empty(t, f.failed, "an upstream that leaves has not failed")
		assert.Empty(t, f.silent)
		assert.NotEmpty(t, f.reports["a:1"])
	})
}

func TestRunEndsAmidPolls(t *testing.T) {
	for _, prometheus := range []string{"", "http://prometheus:9090"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, func(c *Config) { c.Prometheus = prometheus })
			f.answer = func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/metrics" {
					return respond(http.StatusOK, &slow{r: r, text: goodPage, chunk: 100, pause: 10 * time.Millisecond}), nil
				}
				return nil, after(r, time.Hour)
			}
			f.follow(t, 500*time.Millisecond, addresses(100)) // some wait, some read metrics, some hang in the listing
			time.Sleep(time.Hour)
			assert.NotEmpty(t, f.asked)
			assert.Equal(t, prometheus != "", len(f.asked[queryPath]) == 1)
			assert.Empty(t, f.reports)
			assert.Empty(t, f.listings)
			assert.Empty(t, f.failed, "a poll that is ended has not failed")
			assert.Empty(t, f.silent)
		})
	}
}

// requireOwnPace: the first poll is early, the second at any time within an interval, and the
// others an interval apart.
func requireOwnPace(t *testing.T, asked []time.Duration, interval time.Duration) {
	t.Helper()
	require.Less(t, asked[1]-asked[0], interval)
	for i := 2; i < len(asked); i++ {
		require.GreaterOrEqual(t, asked[i]-asked[i-1], interval*8/10)
		require.LessOrEqual(t, asked[i]-asked[i-1], interval*12/10)
	}
}

func TestRunPollsEachAtItsOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		all := addresses(20)
		f.follow(t, 500*time.Second, all)
		phases := map[time.Duration]bool{}
		var second time.Duration
		for _, address := range all {
			asked := f.asked[address]
			require.InDelta(t, 100, len(asked), 4)
			require.Less(t, asked[0], 500*time.Millisecond, "the first comes soon")
			requireOwnPace(t, asked, 5*time.Second)
			require.Len(t, f.reports[address], len(asked))
			require.Empty(t, f.failed[address])
			phases[asked[0]] = true
			second += asked[1] - asked[0]
		}
		assert.Len(t, phases, len(all), "no two upstreams are first asked at the same time")
		assert.InDelta(t, 2.5, second.Seconds()/float64(len(all)), 1, "the second polls fill the interval")
	})
}

// TestRunIsNotDelayedByAnyUpstream lets upstreams fail in every way that takes time.
func TestRunIsNotDelayedByAnyUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.Reported = []string{"hangs:1", "drips:1"} })
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
		f.follow(t, 500*time.Second, []string{"hangs:1", "drips:1", "drips-listing:1", "well:1"})
		for _, address := range f.followed {
			assert.InDelta(t, 100, len(f.asked[address]), 5, address)
		}
		assert.Len(t, f.reports["well:1"], len(f.asked["well:1"]))
		assert.Empty(t, f.failed["well:1"])
		for _, address := range []string{"hangs:1", "drips:1"} {
			assert.Empty(t, f.reports[address])
			late := "upstream " + address + ": metrics: no complete response within "
			assert.Equal(t, []string{late + "2s", late + "1s", late + "2s"}, slices.Compact(f.failed[address]))
		}
		assert.InDelta(t, 100, len(f.reports["drips-listing:1"]), 4)
		assert.Equal(t, []string{"upstream drips-listing:1: cache listing: no complete response within 2s"}, slices.Compact(f.failed["drips-listing:1"]))
	})
}

func TestReportDelaysItsUpstreamOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		quick := 0
		f := newFleet(t, func(c *Config) {
			c.Report = func(address string, _ pool.Report) {
				if address == "slow:1" {
					<-release
					return
				}
				quick++
			}
		})
		f.during(t, func() {
			f.Follow([]string{"slow:1", "quick:1"})
			time.Sleep(100 * time.Second)
			synctest.Wait()
			assert.Greater(t, quick, 15)
			close(release)
		})
	})
}

// After a failed poll, an upstream that has reported is polled again soon, a few times, and
// with a shorter timeout.
func TestAnUpstreamThatStopsReportingIsAskedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.answer = func(r *http.Request) (*http.Response, error) {
			if since := time.Since(f.begun); since > 20*time.Second && since < 60*time.Second {
				return nil, after(r, time.Hour)
			}
			return well(r)
		}
		f.follow(t, 80*time.Second, []string{"hangs:1"})
		asked := f.asked["hangs:1"]
		first := slices.IndexFunc(asked, func(at time.Duration) bool { return at > 20*time.Second })
		assert.Equal(t, 2*time.Second, asked[first+1]-asked[first], "the first poll has its time")
		assert.Equal(t, time.Second, asked[first+2]-asked[first+1])
		assert.Equal(t, time.Second, asked[first+3]-asked[first+2])
		assert.GreaterOrEqual(t, asked[first+4]-asked[first+3], 4*time.Second, "not for ever")
		errs := f.failed["hangs:1"]
		assert.Equal(t, []string{"upstream hangs:1: metrics: no complete response within 2s", "upstream hangs:1: metrics: no complete response within 1s"}, slices.Compact(errs[:4]))
		assert.Equal(t, "upstream hangs:1: metrics: no complete response within 2s", errs[4])
		assert.Len(t, errs, f.unreported["hangs:1"])
		last := f.reports["hangs:1"][len(f.reports["hangs:1"])-1]
		assert.Greater(t, last.At.Sub(f.begun), 60*time.Second)
	})
}

// A server without reports is polled once a minute, and that is not a failure. An unreachable
// one is polled at the usual rate, because it can start at any time. If it has reported to the
// previous source, it has failed.
func TestAnUpstreamThatNeverReportsIsAskedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.Reported = []string{"stopped:1"} })
		f.answer = func(r *http.Request) (*http.Response, error) {
			since := time.Since(f.begun)
			switch {
			case r.URL.Host == "hangs:1":
				return nil, after(r, time.Hour)
			case r.URL.Host == "late:1" && since > 30*time.Minute:
				return well(r)
			case r.URL.Host == "down:1" && since > 31*time.Minute:
				return well(r)
			case r.URL.Host == "down:1":
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			}
			return respond(http.StatusNotFound, strings.NewReader("")), nil
		}
		f.follow(t, time.Hour, []string{"plain:1", "hangs:1", "late:1", "down:1", "stopped:1"})
		for _, address := range []string{"plain:1", "hangs:1"} {
			asked := f.asked[address]
			assert.Less(t, asked[2], 12*time.Second, "tried a few times at first")
			assert.InDelta(t, 63, len(asked), 4)
			for i := 3; i < len(asked); i++ {
				assert.GreaterOrEqual(t, asked[i]-asked[i-1], 48*time.Second)
			}
			assert.Len(t, f.silent[address], len(asked))
			assert.Empty(t, f.failed[address])
		}
		assert.Equal(t, "upstream plain:1: metrics: status 404 Not Found", f.silent["plain:1"][0])
		assert.InDelta(t, 360, len(f.reports["late:1"]), 20, "one that reports is asked like any other")
		assert.Empty(t, f.failed["late:1"])
		assert.InDelta(t, 720, len(f.asked["down:1"]), 30)
		assert.Less(t, f.reports["down:1"][0].At.Sub(f.begun), 31*time.Minute+7*time.Second)
		assert.InDelta(t, 720, len(f.failed["stopped:1"]), 30)
		assert.Empty(t, f.silent["stopped:1"])
	})
}

func TestAskPollsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.PollNow("a:1") // it is not followed yet
		f.during(t, func() {
			f.Follow([]string{"a:1", "b:1"})
			time.Sleep(20 * time.Second)
			synctest.Wait()
			polls := len(f.asked["a:1"])
			others := len(f.asked["b:1"])
			f.PollNow("a:1")
			f.PollNow("a:1")
			f.PollNow("unknown:1")
			synctest.Wait()
			assert.Greater(t, len(f.asked["a:1"]), polls)
			assert.Len(t, f.asked["b:1"], others)
			f.Follow([]string{"b:1"})
			synctest.Wait()
			f.PollNow("a:1")
		})
		assert.Equal(t, 20*time.Second, f.asked["a:1"][len(f.asked["a:1"])-1])
	})
}

// Refused polls mean only that the upstream is down, also for an upstream that has never reported.
func TestAnUpstreamThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.Reported = []string{"a:1"} })
		f.answer = func(r *http.Request) (*http.Response, error) {
			if time.Since(f.begun) < time.Minute {
				return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			}
			if r.URL.Host == "b:1" {
				return respond(http.StatusNotFound, strings.NewReader("")), nil
			}
			return well(r)
		}
		f.during(t, func() {
			f.Follow([]string{"a:1", "b:1"})
			time.Sleep(59 * time.Second)
			f.locked(func() { assert.Empty(t, f.failed); assert.Empty(t, f.silent) })
			time.Sleep(time.Minute)
		})
		for address, checks := range f.checked {
			last := len(checks) - 1
			for _, why := range checks[:last] {
				assert.ErrorIs(t, why, health.ErrRefused, address)
			}
			assert.NoError(t, checks[last], address)
		}
		assert.Len(t, f.checked, 2)
		assert.Empty(t, f.unreported, "it is down, which is more")
		assert.Empty(t, f.failed)
		assert.Contains(t, f.silent["b:1"], "upstream b:1: metrics: status 404 Not Found")
	})
}

// A poll that fails because this process has no file descriptors is no evidence against the upstream.
func TestPollsWithoutFileDescriptors(t *testing.T) {
	for _, path := range []string{"", "/healthz"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, func(c *Config) {
				c.Reported, c.HealthCheckPath = []string{"a:1"}, path
				c.IsShortage = func(err error) bool { return errors.Is(err, syscall.EMFILE) }
			})
			f.answer = func(r *http.Request) (*http.Response, error) {
				if time.Since(f.begun) < 30*time.Second {
					return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
				}
				return well(r)
			}
			f.follow(t, time.Minute, []string{"a:1"})
			assert.Contains(t, f.failed["a:1"][0], "too many open files")
			assert.Empty(t, f.unreported)
			assert.Equal(t, path != "", len(f.checked["a:1"]) > 0)
			assert.NoError(t, errors.Join(f.checked["a:1"]...))
		})
	}
}

// A poll whose time the resolver uses up ends with the error of a look-up, one that only the upstream's silence ends does not.
func TestAResolverThatHangs(t *testing.T) {
	silent := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	resolving := net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: silent}}
	for lookup, dial := range map[string]func(ctx context.Context, network, address string) (net.Conn, error){
		"lookup name.test: ": resolving.DialContext, "": silent,
	} {
		synctest.Test(t, func(t *testing.T) {
			dialer := func(ctx context.Context, network, address string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return dial(ctx, network, address)
			}
			err := get(t.Context(), newClient(time.Second, dialer), request{url: "http://name.test:1/metrics", timeout: time.Second}, nil)
			assert.EqualError(t, err, lookup+"no complete response within 1s")
			assert.ErrorIs(t, err, health.ErrNoResponse, lookup)
			_, failed := errors.AsType[*net.DNSError](err)
			assert.Equal(t, lookup != "", failed, "the error of a look-up")
			time.Sleep(2 * time.Minute) // until the dials have ended
		})
	}
}

// With a health path, no other path is requested. A failed check is soon repeated.
func TestHealthChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.HealthCheckPath = "/healthz" })
		f.answer = func(r *http.Request) (*http.Response, error) {
			assert.Equal(t, "/healthz", r.URL.Path)
			bad := time.Since(f.begun) > 20*time.Second && time.Since(f.begun) < 30*time.Second
			switch {
			case r.URL.Host == "none:1":
				return respond(http.StatusNotFound, strings.NewReader("")), nil
			case r.URL.Host == "hangs:1":
				return nil, after(r, time.Hour)
			case bad:
				return respond(http.StatusServiceUnavailable, strings.NewReader("sorry")), nil
			}
			return respond(http.StatusOK, strings.NewReader("fine")), nil
		}
		f.follow(t, 100*time.Second, []string{"a:1", "none:1", "hangs:1"})
		sick := slices.DeleteFunc(f.checked["a:1"], func(why error) bool { return why == nil })
		assert.GreaterOrEqual(t, len(sick), 2, "the next came soon")
		assert.EqualError(t, sick[0], "status 503 Service Unavailable")
		assert.InDelta(t, 20, len(f.checked["none:1"]), 4)
		assert.NoError(t, errors.Join(f.checked["none:1"]...), "it answers")
		assert.EqualError(t, f.checked["hangs:1"][0], "no complete response within 2s")
		assert.NotContains(t, f.checked["hangs:1"], nil)
		assert.Empty(t, f.failed)
		assert.Empty(t, f.silent)
		assert.Empty(t, f.reports)
	})
}

func TestPollingIsDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.Instead = none })
		f.during(t, func() {
			f.Follow([]string{"a:1"})
			f.PollNow("a:1")
			time.Sleep(time.Hour)
		})
		assert.Empty(t, f.asked)
		assert.Empty(t, f.silent)
	})
}
