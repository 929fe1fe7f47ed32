package proxy_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/test/balancing"
	"example.org/pilotfish/test/peer"
)

// reports lets an upstream report this number of stalled joblets.
func (c *sidecar) reports(address string, stalled float64) {
	c.balancer.Report(address, balancing.Report(stalled))
}

// A job that was moved can have started at its first upstream. If the next upstream does not
// respond either, the error response reports both.
func TestAMovedJobThatFails(t *testing.T) {
	for name, address := range map[string]string{
		"refuses":     refusing(t),
		"not started": answering(t, busy),
		"dies":        peer.Listen(t, func(p *peer.Peer) { p.Request() }),
	} {
		t.Run(name, func(t *testing.T) {
			waits := make(chan struct{})
			sick := peer.Listen(t, func(p *peer.Peer) {
				p.Request()
				close(waits)
				p.Gone()
			})
			c := startSidecar(t, setup{
				upstreams: []string{sick, address},
				queue:     dispatch.QueueSettings{Jobs: 1, Bytes: 1, Wait: 1},
			})
			c.reports(sick, 0)
			c.reports(address, 0)
			go func() {
				<-waits
				balancing.Hang(c.balancer, sick)
			}()
			res, text := c.post(`{"project_id":1}`)
			assert.Equal(t, 502, res.StatusCode)
			assert.Equal(t, "no-response", res.Header.Get("Pilotfish-Reason"))
			assert.Contains(t, text, address, "the cause is that of the last attempt")
			r := c.seen(1)[0]
			require.Len(t, r.Attempts, 2)
			assert.Equal(t, pool.Moved, r.Attempts[0].Outcome)
			assert.Equal(t, intake.NoAnswer, r.Outcome)
		})
	}
}

// A job whose upstream becomes suspect is sent to another, and nobody but the log hears of it. It stays
// where anything of a response has come, and where it could not be sent again.
func TestAJobIsMovedFromASuspect(t *testing.T) {
	once, _ := jobOf(256 << 10)
	for name, c := range map[string]struct {
		job, said, rest string
		moved           int
	}{
		"nothing was said":    {"{}", "", ok, 1},
		"it is processed":     {"{}", "HTTP/1.1 102 Processing\r\n\r\n", ok, 0},
		"early hints":         {"{}", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", ok, 0},
		"go on":               {"{}", "HTTP/1.1 100 Continue\r\n\r\n", ok, 0},
		"a head":              {"{}", ok[:len(ok)-2], "ok", 0},
		"half a line":         {"{}", ok[:9], ok[9:], 0},
		"it can be sent once": {once, "", ok, 0}, // its body is not kept
	} {
		bubbleOf(t, name, func(t *testing.T, m *memory) {
			sick := m.upstream(t, "sick:1", func(p *peer.Peer) {
				p.Request()
				p.Say("%s", c.said)
				time.Sleep(time.Minute)
				p.Say("%s", c.rest)
			})
			well := m.upstream(t, "well:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })
			s := startSidecar(t, setup{network: m, budget: 1, upstreams: []string{sick, well}})
			s.reports(sick, 0)
			s.reports(well, 0)
			time.AfterFunc(10*time.Second, func() {
				s.reports(well, 0)
				balancing.Hang(s.balancer, sick)
			})
			status, text, _, err := m.submit(t, c.job)
			require.NoError(t, err)
			assert.Equal(t, []any{200, "ok"}, []any{status, text})
			r := s.seen(1)[0]
			require.Len(t, r.Attempts, 1+c.moved)
			if c.moved > 0 {
				assert.Equal(t, []any{sick, pool.Moved}, []any{r.Attempts[0].Upstream, r.Attempts[0].Outcome})
				assert.Contains(t, r.Attempts[0].Err, "moved to another upstream")
			}
			assert.Equal(t, pool.Answered, r.Attempt().Outcome)
		})
	}
}

// The ID of each attempt is unique, so that its upstream can be asked to withdraw it. It replaces the ID that the submitter sent.
func TestAttemptsHaveIDs(t *testing.T) {
	ids := make(chan string, 2)
	serve := func(response string) string {
		return peer.Listen(t, func(p *peer.Peer) {
			for r := p.Request(); r != nil; r = p.Request() {
				ids <- r.Header.Get("Job-Id")
				p.Say("%s", response)
			}
		})
	}
	c := setup{upstreams: []string{serve("HTTP/1.1 503 No\r\nJob-Started: withdrawn\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"), serve(ok)}}
	c.Job.WithdrawPath = "/v1/jobs/{id}"
	s := startSidecar(t, c)
	res, _ := s.post("{}", "Job-Id", "mine")
	assert.Equal(t, 200, res.StatusCode)
	first, second := <-ids, <-ids
	assert.NotEmpty(t, second)
	assert.NotEqual(t, first, second)
	assert.NotContains(t, []string{first, second}, "mine")
	for _, state := range s.balancer.States() {
		assert.True(t, state.Eligible, "a withdrawal is no refusal for load")
	}
}

// A job that was withdrawn on request is sent to the upstream that is claimed for it, however long the response.
func TestAWithdrawnJobWithALongResponse(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		waits, withdrawn := make(chan struct{}), make(chan struct{})
		first := m.upstream(t, "a:1", func(p *peer.Peer) {
			p.Request()
			close(waits)
			<-withdrawn
			p.Say("HTTP/1.1 503 No\r\nJob-Started: withdrawn\r\nContent-Length: 100000\r\n\r\n%s", strings.Repeat("w", 100_000))
		})
		second := m.upstream(t, "b:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })
		s := startSidecar(t, setup{network: m, upstreams: []string{first, second}, withdraw: func(string, string) bool {
			close(withdrawn)
			return true
		}})
		s.reports(first, 0)
		s.reports(second, 1000)
		go func() {
			<-waits
			time.Sleep(time.Second)
			s.balancer.Drain(first, true)
			s.reports(second, 0)
			time.Sleep(100 * time.Millisecond)
			s.reports(first, 3)
		}()
		status, text, _, err := m.submit(t, "{}")
		require.NoError(t, err)
		assert.Equal(t, []any{200, "ok"}, []any{status, text})
		synctest.Wait()
		attempts := s.seen(1)[0].Attempts
		require.Len(t, attempts, 2)
		assert.Equal(t, pool.Moved, attempts[0].Outcome)
	})
}
