package prewarm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstreams is the transport to all of them: it writes down what they are asked.
type upstreams struct {
	mu     sync.Mutex
	begun  time.Time
	asked  []string
	status int // 0 refuses connections, -1 never answers
}

func (u *upstreams) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	u.asked = append(u.asked, fmt.Sprintf("%v %s %s%s %s", time.Since(u.begun), r.Method, r.URL.Host, r.URL.Path, text))
	status := u.status
	u.mu.Unlock()
	switch status {
	case 0:
		return nil, errors.New("connection refused")
	case -1:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: http.NoBody}, nil
}

// rig is a prewarmer that runs in a bubble.
type rig struct {
	*Prewarmer
	*upstreams
	mu       sync.Mutex
	projects quality.Projects
	errs     []error
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	g := &rig{upstreams: &upstreams{begun: time.Now(), status: http.StatusNoContent}}
	cfg := Config{
		Transport: g,
		Settings:  Default(),
		Busiest: func(now time.Time, upstream string, n int) []quality.Busy {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.projects.Counts(now, upstream).Top(n)
		},
		Successor: func(uint64, string) string { return "b:1" },
		Observe: func(_ Prefetch, err error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.errs = append(g.errs, err)
		},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	g.Prewarmer, err = New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return g
}

// asked is what upstreams were asked until now.
func (g *rig) asked() []string {
	synctest.Wait()
	g.upstreams.mu.Lock()
	defer g.upstreams.mu.Unlock()
	return g.upstreams.asked
}

// ends is how prefetches ended until now.
func (g *rig) ends() []error {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.errs
}

// begin lets the upstreams' time start now.
func (u *upstreams) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.begun = time.Now()
}

// answer sets what they answer from now on.
func (u *upstreams) answer(status int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status = status
}

// busy notes jobs of projects at a:1, the first the busiest.
func (g *rig) busy(projects ...string) {
	for i, p := range projects {
		for range len(projects) - i {
			g.note("a:1", uint64(i+1), p)
		}
	}
}

func (g *rig) note(upstream string, key uint64, project string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.projects.Note(time.Now(), key, intake.NewText(project), upstream)
}

var staying = []pool.Upstream{{Address: "a:1"}, {Address: "b:1"}}
var leaving = []pool.Upstream{{Address: "a:1", Draining: true}, {Address: "b:1"}}

func TestBusiestAreFetchedElsewhereOnNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, func(c *Config) { c.Projects = 3 })
		g.busy("12", "shoes", "012", "7")
		g.Follow(staying)
		time.Sleep(10*time.Second + 1)
		assert.Empty(t, g.asked())

		g.begin()
		g.Follow(leaving)
		assert.Len(t, g.asked(), 1, "the first at once")
		time.Sleep(time.Minute)
		g.Follow(leaving) // is no news
		time.Sleep(time.Minute)
		require.Len(t, g.asked(), 3)
		assert.Equal(t, `0s POST b:1/v1/prefetch {"project_id":12}`, g.asked()[0])
		assert.Contains(t, g.asked()[1], `POST b:1/v1/prefetch {"project_id":"shoes"}`)
		assert.Contains(t, g.asked()[2], `POST b:1/v1/prefetch {"project_id":"012"}`)
		assert.Equal(t, []error{nil, nil, nil}, g.ends())

		g.Follow(staying)
		time.Sleep(time.Second)
		g.Follow(leaving)
		time.Sleep(time.Minute)
		assert.Len(t, g.asked(), 6, "a second notice is one of its own")
	})
}

func TestEndOfLifeIsANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, nil)
		g.Follow([]pool.Upstream{{Address: "a:1", StopsAt: time.Now().Add(time.Hour)}, {Address: "b:1"}})
		time.Sleep(time.Hour - notice - time.Second)
		g.busy("1")
		assert.Empty(t, g.asked())
		time.Sleep(3 * time.Second)
		assert.Len(t, g.asked(), 1)
	})
}

func TestWhatNeedsNothingIsNotFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, func(c *Config) {
			c.Projects = 1 // one that is cached elsewhere does not count
			c.Successor = func(project uint64, leaving string) string {
				assert.Equal(t, "a:1", leaving)
				if project == 1 {
					return "" // is cached elsewhere
				}
				return "c:1"
			}
		})
		g.busy("1", "2")
		g.note("a:1", 0, "") // a job without a project
		g.note("b:1", 9, "9")
		g.Follow(leaving)
		time.Sleep(time.Minute)
		require.Len(t, g.asked(), 1)
		assert.Contains(t, g.asked()[0], `c:1/v1/prefetch {"project_id":2}`)
	})
}

func TestFailuresAreToldAndNotRepeated(t *testing.T) {
	for status, says := range map[int]string{0: "connection refused", -1: "deadline exceeded", 404: "b:1 answered Not Found", 302: "answered Found"} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig(t, nil)
			g.answer(status)
			g.busy("1", "2")
			g.Follow(leaving)
			time.Sleep(2 * time.Minute)
			assert.Len(t, g.asked(), 2)
			require.Len(t, g.ends(), 2)
			assert.ErrorContains(t, g.ends()[0], "prefetch: ")
			assert.ErrorContains(t, g.ends()[0], says)
		})
	}
}

func TestAProjectThatIsNoTextIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, nil)
		g.busy("\xff")
		g.Follow(leaving)
		time.Sleep(time.Minute)
		assert.Empty(t, g.asked())
		require.Len(t, g.ends(), 1)
		assert.ErrorContains(t, g.ends()[0], "invalid UTF-8")
	})
}

func TestWithoutProjectsNothingIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, func(c *Config) {
			c.Projects = 0
			c.Busiest = func(time.Time, string, int) []quality.Busy { assert.Fail(t, "asked for nothing"); return nil }
		})
		for range 3 {
			g.Follow(leaving) // does not block, although nobody takes it
		}
		time.Sleep(time.Minute)
		assert.Empty(t, g.asked())
	})
}

func TestConfigIsChecked(t *testing.T) {
	whole := Config{Settings: Default(), Busiest: func(time.Time, string, int) []quality.Busy { return nil }, Successor: func(uint64, string) string { return "" }, Observe: func(Prefetch, error) {}, Transport: http.DefaultTransport}
	for want, change := range map[string]func(*Config){
		"prewarm: Busiest, Successor, Observe and Transport are required": func(c *Config) { c.Busiest = nil },
		"prewarm: projects: -1 is not between 0 and 1000":                 func(c *Config) { c.Projects = -1 },
		"prewarm: projects: 1001 is not between 0 and 1000":               func(c *Config) { c.Projects = 1001 },
		`prewarm: path: "x" must start with /`:                            func(c *Config) { c.Path = "x" },
	} {
		cfg := whole
		change(&cfg)
		_, err := New(cfg)
		assert.EqualError(t, err, want)
	}
	_, err := New(whole)
	assert.NoError(t, err)
}
