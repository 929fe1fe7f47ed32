package discovery

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// reply is one answer of a scripted agent.
type reply struct {
	after    time.Duration // before the answer comes
	block    bool          // it comes when the query has waited as long as it wants
	hang     bool          // it never comes
	refuse   bool          // no connection
	status   int           // 0 is 200
	index    string        // empty leaves the header out
	noLeader bool
	headers  map[string]string
	body     string
}

// list is a reply with passing instances by name.
func list(index, names string) reply { return reply{index: index, body: entries(names)} }

// entries is the JSON of instances named as in "a b c".
func entries(names string) string {
	var all []string
	for _, n := range strings.Fields(names) {
		all = append(all, fmt.Sprintf(`{"Node":{"Address":"10.0.0.1"},"Service":{"ID":%q,"Address":%q,"Port":1}}`, n, n))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// late makes the reply come after d, and quiet once the query's own wait is over.
func (r reply) late(d time.Duration) reply { r.after = d; return r }
func (r reply) quiet() reply               { r.block = true; return r }

// agent is a scripted Consul agent, a transport in memory. Its last reply
// goes on for ever.
type agent struct {
	replies []reply

	mu    sync.Mutex
	asked []asked
}

// asked is one query that the agent got.
type asked struct {
	at    time.Time
	query *http.Request
}

func (a *agent) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	n := len(a.asked)
	a.asked = append(a.asked, asked{at: time.Now(), query: r})
	a.mu.Unlock()

	say := a.replies[min(n, len(a.replies)-1)]
	if say.refuse {
		return nil, fmt.Errorf("dial tcp 127.0.0.1:8500: connect: connection refused")
	}
	if say.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil && say.block {
		say.after = wait
	}
	if !sleep(r.Context(), say.after) {
		return nil, r.Context().Err()
	}
	resp := &http.Response{
		StatusCode: say.status, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(say.body)),
	}
	if say.status == 0 {
		resp.StatusCode = http.StatusOK
	}
	if say.index != "" {
		resp.Header.Set("X-Consul-Index", say.index)
	}
	resp.Header.Set("X-Consul-LastContact", "0")
	resp.Header.Set("X-Consul-KnownLeader", fmt.Sprint(!say.noLeader))
	for k, v := range say.headers {
		resp.Header.Set(k, v)
	}
	return resp, nil
}

// indexes is the index parameter of each query, "-" where there is none.
func (a *agent) indexes() string {
	var all []string
	for _, q := range a.asked {
		i := q.query.URL.Query().Get("index")
		if i == "" {
			i = "-"
		}
		all = append(all, i)
	}
	return strings.Join(all, " ")
}

// heard is one set that a Discovery sent.
type heard struct {
	after time.Duration // since the start
	set   []pool.Upstream
}

// follow runs d for so long, and returns what it sent. It must be called in a bubble.
func follow(t *testing.T, d *Discovery, howLong time.Duration) []heard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), howLong)
	defer cancel()
	out := make(chan []pool.Upstream)
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- d.Run(ctx, out) }()
	var all []heard
	for {
		select {
		case set := <-out:
			all = append(all, heard{after: time.Since(start), set: set})
		case err := <-ended:
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return all
		}
	}
}

// sets is the sequence of sets that were sent.
func sets(all []heard) string {
	var text []string
	for _, h := range all {
		text = append(text, names(h.set))
	}
	return strings.Join(text, " | ")
}

// consulOf is a Discovery of the service "rules" at a.
func consulOf(t *testing.T, a *agent, change func(*Config)) *Discovery {
	t.Helper()
	cfg := Config{Consul: &ConsulConfig{Address: "consul.test:8500", Service: "rules", Transport: a}}
	if change != nil {
		change(&cfg)
	}
	d, err := New(cfg, seeded())
	require.NoError(t, err)
	return d
}

// bubble runs f where time is simulated.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
