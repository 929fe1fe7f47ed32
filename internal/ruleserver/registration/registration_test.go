package registration

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kept runs a registration until the bubble's test ends. told collects what is observed.
func kept(t *testing.T, cfg Config) (r *Registration, told func() []error, stop func()) {
	t.Helper()
	var mu sync.Mutex
	var all []error
	cfg.Observe = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err)
	}
	r, err := New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return r, func() []error {
		mu.Lock()
		defer mu.Unlock()
		return append([]error(nil), all...)
	}, stop
}

func TestRegisters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, cfg := example()
		_, told, _ := kept(t, cfg)
		synctest.Wait()
		s := agent.has(t)
		assert.Equal(t, "rules", s.Name)
		assert.Equal(t, "10.0.0.1", s.Address)
		assert.Equal(t, 9001, s.Port)
		assert.Equal(t, map[string]string{
			"cores": "16", "started_at": "2026-03-01T12:00:00Z", "preemptible": "true",
			"stops_at": "2026-03-02T12:00:00Z", "draining": "false",
		}, s.Meta)
		assert.Equal(t, "http://10.0.0.1:9001/healthz", s.Check.HTTP)
		assert.Equal(t, "1s", s.Check.Interval)
		assert.Equal(t, "1m0s", s.Check.DeregisterCriticalServiceAfter)
		assert.Equal(t, []error{nil}, told())

		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, agent.puts, "what the agent knows it is not told again")
		assert.Equal(t, 21, agent.looks, "at the start and every 3 s")
	})
}

func TestRegistersAgainWhenTheAgentForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, cfg := example()
		kept(t, cfg)
		synctest.Wait()
		agent.change(func(a *fakeAgent) { clear(a.services) })
		time.Sleep(lookInterval)
		synctest.Wait()
		agent.has(t)
		agent.change(func(a *fakeAgent) {
			s := a.services["rules-10.0.0.1:9001"]
			s.Meta = nil
			a.services["rules-10.0.0.1:9001"] = s
		})
		time.Sleep(lookInterval)
		synctest.Wait()
		assert.Equal(t, "16", agent.has(t).Meta["cores"], "what another has changed is put right")
	})
}

func TestKeepsTryingWhileTheAgentFails(t *testing.T) {
	for name, f := range map[string]struct {
		fault func(*fakeAgent)
		says  string
	}{
		"down":    {func(a *fakeAgent) { a.down = true }, "connection refused"},
		"failing": {func(a *fakeAgent) { a.status = http.StatusInternalServerError }, "500"},
		"denying": {func(a *fakeAgent) { a.status = http.StatusForbidden }, "403"},
		"hanging": {func(a *fakeAgent) { a.hangs = true }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, cfg := example()
				agent.change(f.fault)
				_, told, _ := kept(t, cfg)
				time.Sleep(time.Minute)
				failures := told()
				require.NotEmpty(t, failures)
				assert.ErrorContains(t, failures[0], "look for rules-10.0.0.1:9001 at consul: ")
				assert.ErrorContains(t, failures[0], f.says)
				assert.Less(t, len(failures), 50, "less and less often")
				agent.change(func(a *fakeAgent) { a.down, a.status, a.hangs = false, 0, false })
				time.Sleep(lookInterval*3/2 + askTimeout)
				synctest.Wait()
				agent.has(t)
				all := told()
				assert.NoError(t, all[len(all)-1])
			})
		})
	}
}

// After a success, the next failure is tried again as soon as the first one was.
func TestAFailureIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, cfg := example()
		agent.change(func(a *fakeAgent) { a.down = true })
		_, told, _ := kept(t, cfg)
		time.Sleep(time.Minute)
		agent.change(func(a *fakeAgent) { a.down = false })
		for told()[len(told())-1] != nil {
			time.Sleep(10 * time.Millisecond)
		}
		agent.change(func(a *fakeAgent) { a.down = true })
		failures := len(told())
		time.Sleep(lookInterval + lookInterval/5)
		assert.GreaterOrEqual(t, len(told())-failures, 2)
	})
}

func TestDrainIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, cfg := example()
		cfg.StopsAt = time.Time{}
		r, _, _ := kept(t, cfg)
		synctest.Wait()
		assert.NotContains(t, agent.has(t).Meta, "stops_at")
		start := time.Now()
		<-r.Drain(epoch.Add(time.Minute))
		assert.Zero(t, time.Since(start))
		meta := agent.has(t).Meta
		assert.Equal(t, "true", meta["draining"])
		assert.Equal(t, "2026-03-01T12:01:00Z", meta["stops_at"])
		assert.Equal(t, "16", meta["cores"])
		assert.Equal(t, "http://10.0.0.1:9001/livez", agent.has(t).Check.HTTP, "it is in the catalogue for as long as it is there")
	})
}

func TestDrainIsToldOnceTheAgentIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, cfg := example()
		r, _, _ := kept(t, cfg)
		synctest.Wait()
		agent.change(func(a *fakeAgent) { a.down = true })
		told := r.Drain(time.Time{})
		time.Sleep(time.Minute)
		select {
		case <-told:
			t.Fatal("nobody was told")
		default:
		}
		agent.change(func(a *fakeAgent) { a.down = false; clear(a.services) })
		<-told
		meta := agent.has(t).Meta
		assert.Equal(t, "true", meta["draining"])
		assert.Equal(t, "2026-03-02T12:00:00Z", meta["stops_at"], "the end of its life stands")
	})
}

func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, cfg := example()
		r, _, stop := kept(t, cfg)
		synctest.Wait()
		stop()
		require.NoError(t, r.Leave(t.Context()))
		assert.True(t, agent.empty())
		assert.NoError(t, r.Leave(t.Context()), "who is not there has left")
		for _, fault := range []func(*fakeAgent){func(a *fakeAgent) { a.status = http.StatusForbidden }, func(a *fakeAgent) { a.down = true }} {
			agent.change(fault)
			assert.ErrorContains(t, r.Leave(t.Context()), "deregister rules-10.0.0.1:9001 at consul: ")
		}
	})
}

// A server that listens everywhere goes by its node's address.
func TestUnspecifiedAddress(t *testing.T) {
	for _, address := range []string{":9001", "0.0.0.0:9001", "[::]:9001"} {
		synctest.Test(t, func(t *testing.T) {
			agent, cfg := example()
			cfg.Address = address
			kept(t, cfg)
			time.Sleep(time.Minute)
			synctest.Wait()
			s, ok := agent.services["rules-127.0.0.1:9001"]
			require.True(t, ok, agent.services)
			assert.Empty(t, s.Address)
			assert.Equal(t, "http://127.0.0.1:9001/healthz", s.Check.HTTP)
			assert.Equal(t, 1, agent.puts)
		})
	}
}

// A health check that is made often still has a second.
func TestAHealthCheckHasASecond(t *testing.T) {
	c := Config{Settings: Settings{CheckInterval: 100 * time.Millisecond}}
	check := c.check("http://10.0.0.1:9001" + healthPath)
	assert.Equal(t, []string{"100ms", "1s"}, []string{check.Interval, check.Timeout})
}

func TestConfigIsChecked(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		`registration: address "9001": want host:port`:              func(c *Config) { c.Address = "9001" },
		`registration: address "a:0": want host:port`:               func(c *Config) { c.Address = "a:0" },
		"registration: consul: want the address of an agent":        func(c *Config) { c.Settings.Consul = "" },
		`registration: service: "a/b" is not a name without / ? #`:  func(c *Config) { c.Settings.Service = "a/b" },
		"registration: deregister_after: 59s must be at least 1m0s": func(c *Config) { c.Settings.DeregisterAfter = 59 * time.Second },
		"registration: check_interval: 0s must be positive":         func(c *Config) { c.Settings.CheckInterval = 0 },
		"registration: Unknown protocol scheme: gopher":             func(c *Config) { c.Settings.Consul = "gopher://a" },
	} {
		_, cfg := example()
		spoil(&cfg)
		_, err := New(cfg)
		assert.EqualError(t, err, want)
	}
}
