package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/test/certs"
)

// An empty list that is confirmed is applied. While it is doubted, queries wait for a shorter time.
func TestConsulAppliesRealEmptiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a b"), list("11", ""), list("11", "").late(30 * time.Second), list("11", "").quiet()}}
		d := consulOf(t, a, nil)
		assert.Equal(t, "a b | -", sets(follow(t, d, 2*time.Minute)))
		assert.Equal(t, "- 60000ms 30000ms 60000ms 60000ms", a.parameters("wait"))
		assert.Equal(t, "consul service rules at consul.test:8500 names no upstream", d.Status().Trouble)
	})
}

// The reply of a streamed view does not say whether there is a leader.
func TestConsulStreamsWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streamed := scripted{index: "11", body: entries("a b"), noLeader: true, after: 20 * time.Second, headers: map[string]string{"X-Consul-Query-Backend": "streaming"}}
		d := consulOf(t, &agent{replies: []scripted{list("10", "a"), streamed}}, nil)
		assert.Equal(t, "a | a b", sets(follow(t, d, 2*time.Minute)))
		assert.Empty(t, d.Status().Trouble)
	})
}

// Whatever an agent replies instead of a list, the set stays, and the trouble has a reason.
func TestConsulKeepsTheSet(t *testing.T) {
	for trouble, bad := range map[string]scripted{
		`status 500: "No cluster leader"`:                        {status: 500, body: "No cluster leader"},
		`status 403: "Permission denied"`:                        {status: 403, body: "Permission denied"},
		`status 502: "<html>` + strings.Repeat("x", 71) + `..."`: {status: 502, body: "<html>" + strings.Repeat("x", 4000)},
		`status 302: ""`:                                         {status: 302, headers: map[string]string{"Location": "http://evil.test/"}},
		"dial tcp 127.0.0.1:8500: connect: connection refused":   {refuse: true},
		"invalid character '<' looking for beginning of value":   {index: "11", body: "<html>"},
		"unexpected EOF":                                         {index: "11", body: entries("a b")[:80]},
		"EOF":                                                    {index: "11"},
		"the Consul server has no leader":                        {index: "11", body: "[]", noLeader: true},
		"the ACL token may not read the service or its nodes":    {index: "11", body: "[]", headers: map[string]string{"X-Consul-Results-Filtered-By-ACLs": "true"}},
		"timeout": {hang: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := consulOf(t, &agent{replies: []scripted{list("10", "a b"), bad}}, nil)
			assert.Equal(t, "a b", sets(follow(t, d, 10*time.Minute)))
			assert.Equal(t, "the Consul agent gives no reply: "+trouble+"; 2 upstreams kept", d.Status().Trouble)
		})
	}
}

func TestConsulAsksAnewAfterAnErrorOrAnIndexThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{replies: []scripted{
			list("100", "a b"), list("50", "a b").late(30 * time.Second), list("50", "a b"), {refuse: true},
			list("50", "a b"), list("51", "a b c").late(10 * time.Second), list("51", "a b c").quiet(),
		}}
		all := follow(t, consulOf(t, a, nil), 90*time.Second)
		assert.Equal(t, "- 100 - 50 - 50 51", a.parameters("index"))
		require.Len(t, all, 2)
		assert.Less(t, all[1].after, 46*time.Second, "the change at 51 is seen when it happens")
	})
}

func TestConsulNeverAsksMoreThanAboutOnceASecond(t *testing.T) {
	const minutes = 10
	var bumps []scripted
	for n := range 2000 {
		bumps = append(bumps, scripted{after: 5 * time.Millisecond, index: strconv.Itoa(n + 1), body: entries("a b")})
	}
	for name, replies := range map[string][]scripted{
		"the index moves every 5 ms":    bumps,
		"the index is missing":          {{body: entries("a b")}},
		"a blocking query does not":     {list("10", "a b")},
		"the index goes back each time": {list("10", "a b"), list("9", "a b"), list("8", "a b"), list("9", "a b"), list("7", "a b")},
		"always empty":                  {list("10", "")},
		"drop and return":               {list("10", "a b c"), list("11", "a"), list("12", "a b c"), list("13", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &agent{replies: replies}
				all := follow(t, consulOf(t, a, nil), minutes*time.Minute)
				assert.LessOrEqual(t, len(a.asked), minutes*60+2)
				assert.GreaterOrEqual(t, len(a.asked), minutes*5, "it does go on asking")
				for i := 2; i < len(a.asked); i++ {
					assert.GreaterOrEqual(t, a.asked[i].at.Sub(a.asked[i-2].at), time.Second)
				}
				assert.LessOrEqual(t, len(all), 2, "the same set is not sent again")
			})
		})
	}
}

func TestConsulReadsTheTokenAgain(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a"), list("10", "a").quiet()}}
		d := consulOf(t, a, func(c *Config) { c.Consul.TokenFile = token })
		assert.Empty(t, follow(t, d, 5*time.Second))
		assert.Contains(t, d.Status().Trouble, "its token: "+token+" cannot be read: no such file")

		require.NoError(t, os.WriteFile(token, []byte("\n"), 0o600))
		follow(t, d, 5*time.Second)
		assert.Contains(t, d.Status().Trouble, "its token: "+token+" is empty")

		require.NoError(t, os.WriteFile(token, []byte("one"), 0o600))
		assert.Equal(t, "a", sets(follow(t, d, time.Minute)))
		require.NoError(t, os.WriteFile(token, []byte("two"), 0o600))
		follow(t, d, 2*time.Minute)
		assert.Equal(t, "one", a.asked[0].query.Header.Get("X-Consul-Token"))
		q := a.asked[len(a.asked)-1].query
		assert.Equal(t, "two", q.Header.Get("X-Consul-Token"))
		assert.Equal(t, "http://consul.test:8500/v1/health/service/rules?index=10&passing=1&wait=60000ms", q.URL.String())
	})
}

func TestReadEntry(t *testing.T) {
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		in   string
		want pool.Upstream
		err  string
	}{
		"all": {
			in: `{"Service":{"Address":"A.example","Port":9001,"Weights":{"Passing":3,"Warning":1},
				"Meta":{"cores":"16","started_at":"2026-03-01T11:00:00+01:00","stops_at":"1772449200","draining":"true","for":"heavy","version":"7"}}}`,
			want: pool.Upstream{Address: "a.example:9001", Weight: 3, Cores: 16, StartedAt: start, StopsAt: start.Add(25 * time.Hour), Draining: true, Heavy: true},
		},
		"the node's address": {
			in:   `{"Node":{"Address":"fd00::7"},"Service":{"Port":9001}}`,
			want: pool.Upstream{Address: "[fd00::7]:9001"},
		},
		"pre-emptible": {
			in:   `{"Service":{"Address":"a","Port":1,"Meta":{"preemptible":"true","started_at":"1772359200.5"}}}`,
			want: pool.Upstream{Address: "a:1", StartedAt: start.Add(500 * time.Millisecond), StopsAt: start.Add(24*time.Hour + 500*time.Millisecond)},
		},
		"pre-emptible without a start": {
			in:   `{"Service":{"Address":"a","Port":1,"Meta":{"preemptible":"true"}}}`,
			want: pool.Upstream{Address: "a:1"},
		},
		"wrong values cost only themselves": {
			in:   `{"Service":{"ID":"i","Address":"a","Port":1,"Meta":{"cores":"many","draining":"1","started_at":"yesterday"}}}`,
			want: pool.Upstream{Address: "a:1", Draining: true},
			err: `instance "i": meta cores="many": want a number from 0 to 65536` + "\n" +
				`started_at="yesterday": want RFC 3339 or Unix seconds`,
		},
		"no port":    {in: `{"Service":{"ID":"i","Address":"a"}}`, err: `instance "i": port 0 is not between 1 and 65535`},
		"no address": {in: `{"Service":{"ID":"i","Port":1}}`, err: `instance "i": host "" is not a name or an IP address`},
		"no service": {in: `{"Node":{}}`, err: "an instance is null"},
		"null":       {in: `null`, err: "an instance is null"},
	} {
		t.Run(name, func(t *testing.T) {
			var e *api.ServiceEntry
			require.NoError(t, json.Unmarshal([]byte(c.in), &e))
			u, err := readEntry(e)
			assert.Equal(t, c.want, u)
			if c.err == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, c.err)
			}
		})
	}
}

// replying is an agent with these instances; those after the first one do not pass.
func replying(first string, others ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{"Index": "10", "LastContact": "0", "KnownLeader": "true"} {
			w.Header().Set("X-Consul-"+name, value)
		}
		list := []string{first}
		if !r.URL.Query().Has("passing") {
			list = append(list, others...)
		}
		_, _ = fmt.Fprintf(w, "[%s]", strings.Join(list, ",")) // a lost reply fails the test by itself
	}
}

// askOnce asks an agent for one reply.
func askOnce(t *testing.T, c Consul) (reply, error) {
	t.Helper()
	c.Service = "rules"
	from, err := c.open(new(Config))
	require.NoError(t, err)
	return from.query(context.Background(), 0)
}

func TestConsulChecksInWarning(t *testing.T) {
	instance := func(name, status string) string {
		return fmt.Sprintf(`{"Service":{"Address":%q,"Port":1,"Weights":{"Passing":4,"Warning":1}},"Checks":[null,{"Status":"passing"},{"Status":%q}]}`, name, status)
	}
	server := httptest.NewServer(replying(instance("a", "passing"), instance("b", "warning"), instance("c", "critical"), instance("d", "unknown"), "null"))
	defer server.Close()
	for allow, want := range map[bool][]pool.Upstream{
		false: {{Address: "a:1", Weight: 4}},
		true:  {{Address: "a:1", Weight: 4}, {Address: "b:1", Weight: 1}},
	} {
		r, err := askOnce(t, Consul{Address: server.URL, AllowWarning: allow})
		require.NoError(t, err)
		assert.Equal(t, allow, r.skipReason != nil, "null")
		assert.Equal(t, want, r.upstreams)
	}
}

// Consul's own variables say how to reach the agent, by TLS or at a Unix socket.
func TestConsulVariables(t *testing.T) {
	rules := strings.Trim(entries("a b"), "[]")
	server := httptest.NewTLSServer(replying(rules))
	defer server.Close()
	_, err := askOnce(t, Consul{Address: server.URL})
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, certs.PEM(server.Certificate().Raw), 0o600))
	t.Setenv("CONSUL_CACERT", ca)
	a, err := askOnce(t, Consul{Address: server.URL})
	require.NoError(t, err)
	assert.Equal(t, "a b", names(a.upstreams))
	t.Setenv("CONSUL_CACERT", ca+".gone")
	_, err = (&Consul{Address: server.URL, Service: "rules"}).open(new(Config))
	require.ErrorContains(t, err, "no such file")
	t.Setenv("CONSUL_CACERT", "")

	local := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "from-env", r.Header.Get("X-Consul-Token"))
		replying(rules)(w, r)
	}))
	path := filepath.Join(t.TempDir(), "s")
	local.Listener.Close()
	local.Listener, err = net.Listen("unix", path)
	require.NoError(t, err)
	local.Start()
	defer local.Close()
	t.Setenv("CONSUL_HTTP_ADDR", "unix://"+path)
	t.Setenv("CONSUL_HTTP_TOKEN", "from-env")
	a, err = askOnce(t, Consul{})
	require.NoError(t, err)
	assert.Equal(t, "a b", names(a.upstreams))
}
