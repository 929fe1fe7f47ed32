package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// epoch is an instant like any other.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ups makes an arranged set of names such as "a b c"; each gets port 1.
func ups(names string) []pool.Upstream {
	var list []pool.Upstream
	for _, n := range strings.Fields(names) {
		list = append(list, pool.Upstream{Address: n + ":1"})
	}
	return arrange(list, own{})
}

// names is the inverse of ups, with upstreams that drain in brackets; "-" is the empty set, "?" none at all.
func names(set []pool.Upstream) string {
	switch {
	case set == nil:
		return "?"
	case len(set) == 0:
		return "-"
	}
	var all []string
	for _, u := range set {
		name := strings.TrimSuffix(u.Address, ":1")
		if u.Draining {
			name = "(" + name + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// scripted is one reply of a scripted agent.
type scripted struct {
	after    time.Duration // before the reply comes
	block    bool          // it comes when the query has waited as long as it wants
	hang     bool          // it never comes
	refuse   bool          // no connection
	err      string        // why there is no reply; %d is another number each time
	status   int           // 0 is 200
	index    string        // empty leaves the header out
	noLeader bool
	headers  map[string]string
	body     string
	endless  string // goes on after body
}

// list is a scripted reply with passing instances by name.
func list(index, names string) scripted { return scripted{index: index, body: entries(names)} }

// entries is the JSON of instances named as in "a b c".
func entries(names string) string {
	var all []string
	for _, n := range strings.Fields(names) {
		all = append(all, fmt.Sprintf(`{"Node":{"Address":"10.0.0.1"},"Service":{"ID":%q,"Address":%q,"Port":1}}`, n, n))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// late makes the reply come after d, and quiet once the query's own wait is over.
func (r scripted) late(d time.Duration) scripted { r.after = d; return r }
func (r scripted) quiet() scripted               { r.block = true; return r }

// agent is a scripted Consul agent, a transport in memory. Its last reply
// goes on for ever.
type agent struct {
	replies []scripted

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
		return nil, errors.New("dial tcp 127.0.0.1:8500: connect: connection refused")
	}
	if say.err != "" {
		return nil, fmt.Errorf(say.err, 40_000+n)
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
		StatusCode: cmp.Or(say.status, http.StatusOK), Header: http.Header{}, Request: r,
		Body: io.NopCloser(io.MultiReader(strings.NewReader(say.body), &endless{text: say.endless})),
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

// endless is a text that comes again and again; "" is no text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	if e.text == "" {
		return 0, io.EOF
	}
	for n < len(p) {
		more := copy(p[n:], e.text[e.at:])
		n += more
		e.at = (e.at + more) % len(e.text)
	}
	return n, nil
}

// parameters is a parameter of each query, "-" where there is none.
func (a *agent) parameters(name string) string {
	var all []string
	for _, q := range a.asked {
		all = append(all, cmp.Or(q.query.URL.Query().Get(name), "-"))
	}
	return strings.Join(all, " ")
}

// sent is one set that a Discovery sent.
type sent struct {
	after time.Duration // since the start
	set   []pool.Upstream
}

// follow runs d for so long, and returns what it sent. It needs simulated time.
func follow(t *testing.T, d *Discovery, howLong time.Duration) []sent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), howLong)
	defer cancel()
	start := time.Now()
	var all []sent
	d.Run(ctx, func(set []pool.Upstream) { all = append(all, sent{after: time.Since(start), set: set}) })
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	return all
}

// sets is the sequence of sets that were sent.
func sets(all []sent) string {
	var text []string
	for _, h := range all {
		text = append(text, names(h.set))
	}
	return strings.Join(text, " | ")
}

// consulOf is a Discovery of the service "rules" at a.
func consulOf(t *testing.T, a *agent, change func(*Config)) *Discovery {
	t.Helper()
	cfg := configOf(Settings{Consul: &Consul{Address: "consul.test:8500", Service: "rules"}})
	cfg.Transport = a
	if change != nil {
		change(&cfg)
	}
	d, err := New(cfg)
	require.NoError(t, err)
	return d
}

// configOf returns the default settings with this source.
func configOf(s Settings) Config {
	s.EmptyAfter = Default().EmptyAfter
	return Config{Settings: s, Rand: seeded()}
}

// troubles records each trouble that a Discovery reports.
func troubles(into *[]string) func(*Config) {
	return func(c *Config) { c.Changed = func(s Status) { *into = append(*into, s.Trouble) } }
}

// many is the names of n upstreams, as in "a b c".
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("u%d", i))
	}
	return strings.Join(all, " ")
}
