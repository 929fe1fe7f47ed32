package proxy_test

import (
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/pkg/selection"
)

// reports makes an upstream report now that so many joblets are stalled there.
func (c *sidecar) reports(address string, stalled float64) {
	c.balancer.Report(address, pool.Report{
		At: time.Now(), Stalled: [2]float64{stalled}, Cores: 4, CoresBusy: -1, Completed: -1, Wait: math.NaN(), Response: math.NaN(),
	})
}

// hangs makes an upstream suspect.
func (c *sidecar) hangs(address string) {
	for range 2 {
		c.balancer.ReportFailed(address, pool.ErrNoResponse)
	}
}

// A job whose upstream becomes suspect is sent to another, and the first connection is
// closed. Nobody but the log hears of it.
func TestAJobIsMovedFromASuspect(t *testing.T) {
	waits, left := make(chan struct{}), make(chan struct{})
	sick := scripted(t, func(p *peer) {
		p.request()
		close(waits)
		p.gone()
		close(left)
	})
	well := answering(t, ok)
	c := startSidecar(t, setup{upstreams: []string{sick.address, well.address}, thoughts: dispatch.DefaultSecondThoughts()})
	c.reports(sick.address, 0)
	c.reports(well.address, 0)
	go func() {
		<-waits
		c.hangs(sick.address)
	}()
	res, text := c.post(`{"project_id":1}`)
	assert.Equal(t, 200, res.StatusCode)
	assert.Equal(t, "ok", text)
	<-left
	r := c.seen(1)[0]
	require.Len(t, r.Attempts, 2)
	assert.Equal(t, []any{sick.address, pool.Moved}, []any{r.Attempts[0].Upstream, r.Attempts[0].Outcome})
	assert.Equal(t, []any{well.address, pool.Answered}, []any{r.Attempts[1].Upstream, r.Attempts[1].Outcome})
	assert.ErrorContains(t, r.Attempts[0].Err, "moved to another upstream")
	assert.Equal(t, []pool.Reason{pool.BySuspicion}, c.moved)
}

// A job stays where something of its response has come, or a sign that it has begun.
func TestAJobThatHasBegunStays(t *testing.T) {
	for name, c := range map[string]struct {
		said, rest string
		moved      int
	}{
		"nothing was said": {"", ok, 1},
		"it has begun":     {"HTTP/1.1 102 Processing\r\nJob-Started: yes\r\n\r\n", ok, 0},
		"it is processed":  {"HTTP/1.1 102 Processing\r\n\r\n", ok, 0},
		"early hints":      {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", ok, 0},
		"go on":            {"HTTP/1.1 100 Continue\r\n\r\n", ok, 0},
		"a head":           {ok[:len(ok)-2], "ok", 0},
		"half a line":      {ok[:9], ok[9:], 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				sick := m.upstream(t, "sick:1", func(p *peer) {
					p.request()
					p.say("%s", c.said)
					time.Sleep(time.Minute)
					p.say("%s", c.rest)
				})
				well := m.upstream(t, "well:1", func(p *peer) {
					for p.request() != nil {
						p.say("%s", ok)
					}
				})
				s := startSidecar(t, setup{network: m, upstreams: []string{sick, well}, thoughts: dispatch.DefaultSecondThoughts()})
				s.reports(sick, 0)
				s.reports(well, 0)
				go func() {
					time.Sleep(10 * time.Second)
					s.reports(well, 0)
					s.hangs(sick)
				}()
				status, text, _, err := m.submit(t, "{}")
				require.NoError(t, err)
				assert.Equal(t, 200, status)
				assert.Equal(t, "ok", text)
				synctest.Wait()
				assert.Len(t, s.seen(1)[0].Attempts, 1+c.moved)
				assert.Len(t, s.moved, c.moved)
			})
		})
	}
}

// A job whose body is not kept whole stays: it could not be sent again.
func TestAJobThatCanBeSentOnceStays(t *testing.T) {
	body, _ := jobOf(256 << 10)
	bubble(t, func(t *testing.T, m *memory) {
		sick := m.upstream(t, "sick:1", func(p *peer) { p.request(); time.Sleep(time.Minute); p.say("%s", ok) })
		well := m.upstream(t, "well:1", func(p *peer) { p.request(); p.say("%s", ok) })
		s := startSidecar(t, setup{network: m, budget: 1, upstreams: []string{sick, well}, thoughts: dispatch.DefaultSecondThoughts()})
		s.reports(sick, 0)
		s.reports(well, 0)
		time.AfterFunc(10*time.Second, func() {
			s.reports(well, 0)
			s.hangs(sick)
		})
		status, _, _, err := m.submit(t, body)
		require.NoError(t, err)
		assert.Equal(t, 200, status)
		r := s.seen(1)[0]
		assert.True(t, r.Unkept)
		assert.Len(t, r.Attempts, 1)
	})
}

// A late job goes to a core that is free, if its upstream tells of beginnings.
func TestALateJobIsMoved(t *testing.T) {
	for _, tells := range []bool{true, false} {
		bubble(t, func(t *testing.T, m *memory) {
			var jobs atomic.Int64
			full := m.upstream(t, "full:1", func(p *peer) {
				for p.request() != nil {
					switch first := jobs.Add(1) == 1; {
					case !first:
						time.Sleep(time.Minute)
					case tells:
						p.say("HTTP/1.1 102 Processing\r\nJob-Started: yes\r\n\r\n")
					}
					p.say("%s", ok)
				}
			})
			free := m.upstream(t, "free:1", func(p *peer) {
				for p.request() != nil {
					p.say("%s", ok)
				}
			})
			policy, err := selection.New("expected")
			require.NoError(t, err)
			s := startSidecar(t, setup{
				network: m, upstreams: []string{full, free}, policy: policy,
				Config: proxy.Config{AskBegun: true}, thoughts: dispatch.DefaultSecondThoughts(),
			})
			s.reports(full, 0)
			s.reports(free, 90)
			m.submit(t, "{}")
			go func() {
				time.Sleep(5 * time.Second)
				s.reports(full, 90)
				s.reports(free, 0)
			}()
			m.submit(t, "{}")
			synctest.Wait()
			got := s.seen(2)[1].Attempts
			assert.Equal(t, full, got[0].Upstream)
			if !tells {
				assert.Len(t, got, 1)
				return
			}
			require.Len(t, got, 2)
			assert.Equal(t, []any{pool.Moved, 5 * time.Second}, []any{got[0].Outcome, got[0].End})
			assert.Equal(t, []any{free, pool.Answered}, []any{got[1].Upstream, got[1].Outcome})
			assert.Equal(t, []pool.Reason{pool.ByLateness}, s.moved)
		})
	}
}

// The sidecar asks upstreams to tell when jobs begin, and keeps that from submitters who
// have not asked.
func TestJobsAskForTheirBeginnings(t *testing.T) {
	asked := make(chan []string, 1)
	up := scripted(t, func(p *peer) {
		for r := p.request(); r != nil; r = p.request() {
			asked <- r.Header["Prefer"]
			p.say("HTTP/1.1 102 Processing\r\nJob-Started: yes\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n%s", ok)
		}
	})
	for name, c := range map[string]struct {
		ask          bool
		prefer, want []string
		told         bool
	}{
		"the sidecar":       {true, nil, []string{"job-started"}, false},
		"both":              {true, []string{"wait=5, Job-Started"}, []string{"wait=5, Job-Started"}, true},
		"for another thing": {true, []string{"wait=5"}, []string{"wait=5", "job-started"}, false},
		"the submitter":     {false, []string{"job-started"}, []string{"job-started"}, true},
		"nobody":            {false, nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSidecar(t, setup{upstreams: []string{up.address}, Config: proxy.Config{AskBegun: c.ask}}).connect()
			head := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
			for _, p := range c.prefer {
				head += "Prefer: " + p + "\r\n"
			}
			s.say("%s\r\n{}", head)
			assert.Equal(t, c.want, <-asked)
			if c.told {
				assert.Equal(t, http.StatusProcessing, s.interim())
			}
			assert.Equal(t, http.StatusEarlyHints, s.interim(), "this is no sign of that")
			final, _ := s.response()
			assert.Equal(t, 200, final.StatusCode)
		})
	}
}
