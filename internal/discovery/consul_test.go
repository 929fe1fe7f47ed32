package discovery

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConsulScripts(t *testing.T) {
	noLeader := reply{status: 500, body: "No cluster leader"}
	for name, c := range map[string]struct {
		replies []reply
		howLong time.Duration
		want    string // the sets sent
		err     string // the status's last error
	}{
		"follows changes": {
			replies: []reply{list("10", "b a"), list("11", "a b c").late(5 * time.Second), list("12", "b c").late(time.Second), list("12", "b c").quiet()},
			howLong: 3 * time.Minute,
			want:    "a b | a b c | b c",
		},
		"comes up after 20 s": {
			replies: []reply{{refuse: true}, {refuse: true}, {refuse: true}, {refuse: true}, list("5", "a b"), list("5", "a b").quiet()},
			howLong: time.Minute,
			want:    "a b",
		},
		"keeps the set through errors": {
			replies: []reply{list("10", "a b"), noLeader, {refuse: true}, {hang: true}, {status: 403, body: "Permission denied"}, noLeader},
			howLong: 20 * time.Minute,
			want:    "a b",
			err:     `ask consul: status 500: "No cluster leader"`,
		},
		"keeps the set through a page of a proxy": {
			replies: []reply{list("10", "a b"), {status: 502, body: "<html>" + strings.Repeat("x", 4000)}},
			howLong: 10 * time.Minute,
			want:    "a b",
			err:     `ask consul: status 502: "<html>` + strings.Repeat("x", 74) + `"…`,
		},
		"keeps the set through HTML with status 200": {
			replies: []reply{list("10", "a b"), {index: "11", body: "<html>"}},
			howLong: 10 * time.Minute,
			want:    "a b",
			err:     "ask consul: invalid character '<' looking for beginning of value",
		},
		"keeps the set through cut JSON": {
			replies: []reply{list("10", "a b"), {index: "11", body: entries("a b")[:80]}},
			howLong: 10 * time.Minute,
			want:    "a b",
			err:     "ask consul: the answer is cut short: unexpected EOF",
		},
		"keeps the set through nothing at all": {
			replies: []reply{list("10", "a b"), {index: "11"}},
			howLong: 10 * time.Minute,
			want:    "a b",
			err:     "ask consul: the answer is cut short: EOF",
		},
		"keeps the set while no leader is known": {
			replies: []reply{list("10", "a b"), {index: "11", body: "[]", noLeader: true}},
			howLong: 10 * time.Minute,
			want:    "a b",
			err:     "ask consul: the answer is of a server that knows no leader",
		},
		"keeps the set while the token may not read": {
			replies: []reply{list("10", "a b"), {index: "11", body: "[]", headers: map[string]string{"X-Consul-Results-Filtered-By-ACLs": "true"}}},
			howLong: 10 * time.Minute,
			want:    "a b",
			err:     "ask consul: the ACL token may not read the service or its nodes",
		},
		"keeps the set while an agent hangs": {
			replies: []reply{list("10", "a b"), {hang: true}},
			howLong: 10 * time.Minute,
			want:    "a b",
			err:     "ask consul: no answer within 5s: context deadline exceeded",
		},
		"does not follow a redirect": {
			replies: []reply{list("10", "a b"), {status: 302, headers: map[string]string{"Location": "http://evil.test/"}}},
			howLong: time.Minute,
			want:    "a b",
			err:     `ask consul: status 302: ""`,
		},
		"survives a short null": {
			replies: []reply{list("10", "a b"), {index: "11", body: "null"}, list("12", "a b c").late(20 * time.Second), list("12", "a b c").quiet()},
			howLong: 5 * time.Minute,
			want:    "a b | a b c",
		},
		"survives a short emptiness": {
			replies: []reply{list("10", "a b"), list("11", ""), list("11", "").late(10 * time.Second), list("12", "a b").late(15 * time.Second), list("12", "a b").quiet()},
			howLong: 5 * time.Minute,
			want:    "a b",
		},
		"applies real emptiness": {
			replies: []reply{list("10", "a b"), list("11", ""), list("11", "").late(30 * time.Second), list("11", "").quiet()},
			howLong: 5 * time.Minute,
			want:    "a b | -",
		},
		"survives half a list": {
			replies: []reply{list("10", "a b c d e"), list("11", "a b"), list("12", "a b c d").late(5 * time.Second), list("12", "a b c d").quiet()},
			howLong: 5 * time.Minute,
			want:    "a b c d e | a b c d",
		},
		"applies half a list that stays": {
			replies: []reply{list("10", "a b c d e"), list("11", "a b"), list("11", "a b").late(10 * time.Second), list("11", "a b").quiet()},
			howLong: 5 * time.Minute,
			want:    "a b c d e | a b",
		},
		"sees the change at 51 after the index went from 100 to 50": {
			replies: []reply{list("100", "a b"), list("50", "a b").late(30 * time.Second), list("50", "a b"), list("51", "a b c").late(10 * time.Second), list("51", "a b c").quiet()},
			howLong: 5 * time.Minute,
			want:    "a b | a b c",
		},
		"a streamed view says nothing of the leader": {
			replies: []reply{list("10", "a"), {index: "11", body: entries("a b"), noLeader: true, after: 20 * time.Second, headers: map[string]string{"X-Consul-Query-Backend": "streaming"}}},
			howLong: 2 * time.Minute,
			want:    "a | a b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := consulOf(t, &agent{replies: c.replies}, nil)
				assert.Equal(t, c.want, sets(follow(t, d, c.howLong)))
				if c.err == "" {
					assert.NoError(t, d.Status().Err)
				} else {
					assert.EqualError(t, d.Status().Err, c.err)
				}
			})
		})
	}
}

func TestConsulAsksAnewAfterTheIndexWentBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []reply{
			list("100", "a b"), list("50", "a b").late(30 * time.Second),
			list("50", "a b"), list("51", "a b c").late(10 * time.Second), list("51", "a b c").quiet(),
		}}
		all := follow(t, consulOf(t, a, nil), 90*time.Second)
		assert.Equal(t, "- 100 - 50 51", a.indexes())
		require.Len(t, all, 2)
		assert.Less(t, all[1].after, 41*time.Second, "the change at 51 is seen when it happens")
	})
}

func TestConsulAsksAnewAfterAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []reply{list("100", "a b"), {refuse: true}, list("7", "a b"), list("7", "a b").quiet()}}
		follow(t, consulOf(t, a, nil), time.Minute)
		assert.Equal(t, "- 100 - 7", a.indexes())
	})
}

func TestConsulNeverAsksMoreThanAboutOnceASecond(t *testing.T) {
	const minutes = 10
	var bumps []reply
	for n := range 2000 {
		bumps = append(bumps, reply{after: 5 * time.Millisecond, index: strconv.Itoa(n + 1), body: entries("a b")})
	}
	for name, replies := range map[string][]reply{
		"the index moves every 5 ms":    bumps,
		"the index is missing":          {{body: entries("a b")}},
		"the index is zero":             {list("0", "a b")},
		"the index is no number":        {list("many", "a b")},
		"a blocking query does not":     {list("10", "a b")},
		"the index goes back each time": {list("10", "a b"), list("9", "a b"), list("8", "a b"), list("9", "a b"), list("7", "a b")},
		"always empty":                  {list("10", "")},
		"drop and return":               {list("10", "a b c"), list("11", "a"), list("12", "a b c"), list("13", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
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

func TestConsulWaitsShorterWhileInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []reply{list("10", "a b"), list("11", ""), list("11", "").late(30 * time.Second), list("11", "").quiet()}}
		follow(t, consulOf(t, a, nil), 2*time.Minute)
		var waits []string
		for _, q := range a.asked {
			waits = append(waits, q.query.URL.Query().Get("wait"))
		}
		assert.Equal(t, []string{"", "60000ms", "30000ms", "60000ms", "60000ms"}, waits)
	})
}

func TestConsulAsksForWhatIsConfigured(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []reply{list("10", "a"), list("11", "a").quiet()}}
		d := consulOf(t, a, func(c *Config) {
			c.Consul.Tag, c.Consul.Datacenter, c.Consul.Namespace = "blue", "dc2", "team"
			c.Consul.TokenFile, c.Consul.Stale, c.Consul.Wait = token, true, 90*time.Second
		})
		follow(t, d, 10*time.Second)
		require.Len(t, a.asked, 2)
		q := a.asked[1].query
		assert.Equal(t, "http://consul.test:8500/v1/health/service/rules?dc=dc2&index=10&ns=team&passing=1&stale=&tag=blue&wait=90000ms", q.URL.String())
		assert.Equal(t, "s3cret", q.Header.Get("X-Consul-Token"))
		assert.Equal(t, "consul service rules tag blue at consul.test:8500", d.Status().Source)
	})
}

func TestConsulReadsTheTokenAgain(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []reply{list("10", "a"), list("10", "a").quiet()}}
		d := consulOf(t, a, func(c *Config) { c.Consul.TokenFile = token })
		assert.Empty(t, follow(t, d, 5*time.Second))
		assert.ErrorContains(t, d.Status().Err, "read consul token: stat "+token)

		require.NoError(t, os.WriteFile(token, []byte("\n"), 0o600))
		follow(t, d, 5*time.Second)
		assert.EqualError(t, d.Status().Err, "read consul token: "+token+" is empty")

		require.NoError(t, os.WriteFile(token, []byte("one"), 0o600))
		assert.Equal(t, "a", sets(follow(t, d, time.Minute)))
		require.NoError(t, os.WriteFile(token, []byte("two"), 0o600))
		follow(t, d, 2*DefaultConsulWait)
		assert.Equal(t, "one", a.asked[0].query.Header.Get("X-Consul-Token"))
		assert.Equal(t, "two", a.asked[len(a.asked)-1].query.Header.Get("X-Consul-Token"))
	})
}

func TestConsulRefusesNonsense(t *testing.T) {
	for want, c := range map[string]ConsulConfig{
		"discovery: consul: want a service":                                                     {},
		`discovery: consul: service "a/b": want a name without / ? #`:                           {Service: "a/b"},
		`discovery: consul: address "ftp://x": want http, https or unix`:                        {Service: "a", Address: "ftp://x"},
		`discovery: consul: address "http://x": tls needs https`:                                {Service: "a", Address: "http://x", TLS: TLSConfig{CAFile: "ca"}},
		"discovery: consul: tls: a certificate needs a key, and a key a certificate":            {Service: "a", TLS: TLSConfig{CertFile: "c"}},
		"discovery: consul: a wait of 1ms: want 1s to 10m0s":                                    {Service: "a", Wait: time.Millisecond},
		"discovery: consul: a timeout of -1s: want a positive duration":                         {Service: "a", Timeout: -time.Second},
		"discovery: consul: tls: Error loading CA File: open /no/ca: no such file or directory": {Service: "a", TLS: TLSConfig{CAFile: "/no/ca"}},
	} {
		_, err := New(Config{Consul: &c}, seeded())
		assert.EqualError(t, err, want)
	}
}
