package proxy_test

import (
	"context"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// reports lets an upstream report this number of stalled joblets.
func (c *sidecar) reports(address string, stalled float64) {
	c.balancer.Report(address, pool.Report{
		At: time.Now(), Stalled: [2]float64{stalled}, Cores: 4, CoresBusy: -1, Completed: -1, Wait: math.NaN(),
	})
}

// hangs makes an upstream suspect.
func (c *sidecar) hangs(address string) {
	for range 2 {
		c.balancer.ReportFailed(address, health.ErrNoResponse)
	}
}

// A job that was moved can have started at its first upstream. If the next upstream does not
// respond either, the error response reports both.
func TestAMovedJobThatFails(t *testing.T) {
	for name, address := range map[string]string{
		"refuses":     refusing(t),
		"not started": answering(t, busy).address,
		"dies":        scripted(t, func(p *peer) { p.request() }).address,
	} {
		t.Run(name, func(t *testing.T) {
			waits := make(chan struct{})
			sick := scripted(t, func(p *peer) {
				p.request()
				close(waits)
				p.gone()
			})
			c := startSidecar(t, setup{
				upstreams: []string{sick.address, address},
				queue:     dispatch.QueueSettings{Jobs: 1, Bytes: 1, Wait: 1},
			})
			c.reports(sick.address, 0)
			c.reports(address, 0)
			go func() {
				<-waits
				c.hangs(sick.address)
			}()
			res, text := c.post(`{"project_id":1}`)
			assert.Equal(t, 502, res.StatusCode)
			assert.Equal(t, "no-answer", res.Header.Get("Pilotfish-Reason"))
			assert.Contains(t, text, address, "the cause is that of the last attempt")
			r := c.seen(1)[0]
			require.Len(t, r.Attempts, 2)
			assert.Equal(t, pool.Moved, r.Attempts[0].Outcome)
			assert.Equal(t, intake.NoAnswer, r.Outcome)
		})
	}
}

// The time of a job may be over when its attempt was withdrawn. Its new place is then free again.
func TestAMovedJobThatIsLate(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		silent := func(p *peer) { p.request(); p.gone() }
		sick, well := m.upstream(t, "sick:1", silent), m.upstream(t, "well:1", silent)
		c := setup{network: m, upstreams: []string{sick, well}}
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := m.Dial(ctx, network, address)
			return slowToEnd{conn}, err
		}
		s := startSidecar(t, c)
		s.reports(sick, 0)
		s.reports(well, 0)
		go func() {
			time.Sleep(10*time.Second - 1)
			s.hangs(sick)
		}()
		status, _, _, err := m.submit(t, `{"timeouts":{"evaluate_seconds":10}}`)
		require.NoError(t, err)
		assert.Equal(t, 504, status)
		synctest.Wait()
		assert.Equal(t, pool.Moved, s.seen(1)[0].Attempts[0].Outcome)
	})
}

// slowToEnd is a connection on which a read takes a nanosecond longer to end than it may.
type slowToEnd struct{ net.Conn }

func (c slowToEnd) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		time.Sleep(time.Nanosecond)
	}
	return n, err
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
				s := startSidecar(t, setup{network: m, budget: 1, upstreams: []string{sick, well}})
				s.reports(sick, 0)
				s.reports(well, 0)
				go func() {
					time.Sleep(10 * time.Second)
					s.reports(well, 0)
					s.hangs(sick)
				}()
				status, text, _, err := m.submit(t, c.job)
				require.NoError(t, err)
				assert.Equal(t, 200, status)
				assert.Equal(t, "ok", text)
				synctest.Wait()
				r := s.seen(1)[0]
				require.Len(t, r.Attempts, 1+c.moved)
				if c.moved > 0 {
					assert.Equal(t, []any{sick, pool.Moved}, []any{r.Attempts[0].Upstream, r.Attempts[0].Outcome})
					assert.Contains(t, r.Attempts[0].Err, "moved to another upstream")
				}
				assert.Equal(t, pool.Answered, r.Attempt().Outcome)
			})
		})
	}
}

// A job that its upstream withdrew is sent to another, and nobody but the log learns of it. Each attempt has its own ID, which
// replaces one of the submitter. If no other upstream takes the job, the submitter can send it again.
func TestAWithdrawnJob(t *testing.T) {
	for name, second := range map[string]string{"taken": ok, "refused": busy} {
		var ids []string
		var mu sync.Mutex
		serve := func(response string) string {
			return scripted(t, func(p *peer) {
				for r := p.request(); r != nil; r = p.request() {
					mu.Lock()
					ids = append(ids, r.Header["Job-Id"]...)
					mu.Unlock()
					p.say("%s", response)
				}
			}).address
		}
		first := serve("HTTP/1.1 503 Service Unavailable\r\nJob-Started: withdrawn\r\nRetry-After: 1\r\nContent-Length: 9\r\n\r\nwithdrawn")
		c := setup{upstreams: []string{first, serve(second)}}
		c.Job.WithdrawPath = "/v1/jobs/{id}"
		s := startSidecar(t, c)
		r, err := http.NewRequest("POST", s.url("/v1/jobs"), strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("Job-Id", "mine")
		res, err := client(t).Do(r)
		require.NoError(t, err)
		res.Body.Close()
		assert.Equal(t, map[string]int{"taken": 200, "refused": 503}[name], res.StatusCode)
		record := s.seen(1)[0]
		require.Len(t, record.Attempts, 2)
		assert.Equal(t, []any{first, pool.Moved}, []any{record.Attempts[0].Upstream, record.Attempts[0].Outcome})
		assert.Contains(t, record.Attempts[0].Err, "withdrew the waiting job")
		require.Len(t, ids, 2)
		assert.NotEqual(t, ids[0], ids[1])
		assert.NotContains(t, ids, "mine")
		for _, state := range s.balancer.States() {
			assert.True(t, state.Eligible || state.Address != first, "a withdrawal is no refusal for load")
		}
	}
}
