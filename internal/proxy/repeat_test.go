package proxy_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/pool"
)

// A pooled connection that ends before the first byte of a response is no failure of the
// upstream, unless the job may be the cause.
func TestADeadConnectionIsReplaced(t *testing.T) {
	unread := func(p *peer) { time.Sleep(time.Minute) } // closes while the job is being written
	read := func(p *peer) { p.request() }
	dead := func(n int64, end func(*peer)) func(*peer) {
		return func(p *peer) {
			if p.n == 1 {
				p.request()
				p.say(ok)
			}
			if p.n <= n {
				end(p)
				return
			}
			p.request()
			p.say(ok)
		}
	}
	both := []pool.Outcome{pool.NoAnswer, pool.Answered}
	for name, tc := range map[string]struct {
		script func(*peer)
		other  bool
		status int
		ended  []pool.Outcome
	}{
		"nothing was sent":                           {dead(1, unread), true, 200, []pool.Outcome{pool.Refused, pool.Answered}},
		"nothing was sent: there is only one":        {dead(1, unread), false, 200, []pool.Outcome{pool.Refused, pool.Answered}},
		"it was sent: elsewhere":                     {dead(1, read), true, 200, both},
		"it was sent: there is only one":             {dead(1, read), false, 200, both},
		"it timed out: that is not the connection":   {dead(1, func(p *peer) { p.request(); p.gone() }), false, 504, []pool.Outcome{pool.TimedOut}},
		"it was not read: nor is that":               {dead(1, func(*peer) { time.Sleep(time.Hour) }), false, 504, []pool.Outcome{pool.TimedOut}},
		"it was sent, and again: the job may be why": {dead(2, read), false, 502, []pool.Outcome{pool.NoAnswer, pool.NoAnswer}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				ups := []string{m.upstream(t, "up:1", tc.script)}
				if tc.other {
					ups = append(ups, m.upstream(t, "up:2", func(p *peer) { p.request(); p.say(ok) }))
				}
				c := startSidecar(t, setup{network: m, upstreams: ups})
				first, _, _, _ := m.submit(t, "{}")
				assert.Equal(t, 200, first)
				synctest.Wait() // until the connection is pooled
				second, _, _, _ := m.submit(t, "{}")
				assert.Equal(t, tc.status, second)
				r := c.seen(2)[1]
				var ended []pool.Outcome
				for _, a := range r.Attempts {
					ended = append(ended, a.Outcome)
				}
				assert.Equal(t, tc.ended, ended)
				assert.Equal(t, tc.other && len(ended) > 1, r.Attempts[len(ended)-1].Upstream == "up:2")
			})
		})
	}
}

// The connection that takes the place of a dead one is a new one: others of the pool may be as dead.
func TestADeadConnectionIsReplacedByANewOne(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		both := make(chan struct{}, 1)
		c := startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", func(p *peer) {
			p.request()
			switch p.n {
			case 1: // it is pooled last, and used first
				<-both
				time.Sleep(time.Second)
				p.say(ok)
				time.Sleep(2 * time.Second)
			case 2:
				both <- struct{}{}
				p.say(ok)
				time.Sleep(4 * time.Second)
			default:
				p.say(ok)
			}
		})}})
		var jobs sync.WaitGroup
		for range 2 {
			jobs.Go(func() { m.submit(t, "{}") })
		}
		jobs.Wait()
		synctest.Wait() // until both connections are pooled
		status, _, _, _ := m.submit(t, "{}")
		assert.Equal(t, 200, status)
		assert.Len(t, c.seen(3)[2].Attempts, 2)
	})
}
