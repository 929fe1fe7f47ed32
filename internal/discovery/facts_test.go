package discovery

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func TestReadEntry(t *testing.T) {
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		in   string
		want pool.Upstream
		err  string
	}{
		"all": {
			in: `{"Service":{"Address":"A.example","Port":9001,"Weights":{"Passing":3,"Warning":1},
				"Meta":{"cores":"16","started_at":"2026-03-01T11:00:00+01:00","stops_at":"1772449200","draining":"true","version":"7"}}}`,
			want: pool.Upstream{Address: "a.example:9001", Weight: 3, Cores: 16, StartedAt: start, StopsAt: start.Add(25 * time.Hour), Draining: true},
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
		"no port":    {in: `{"Service":{"ID":"i","Address":"a"}}`, err: `instance "i": port 0: want 1 to 65535`},
		"no address": {in: `{"Service":{"ID":"i","Port":1}}`, err: `instance "i": host "": want a name or an IP address`},
		"no service": {in: `{"Node":{}}`, err: "an instance that is null"},
		"null":       {in: `null`, err: "an instance that is null"},
	} {
		t.Run(name, func(t *testing.T) {
			var e *api.ServiceEntry
			require.NoError(t, json.Unmarshal([]byte(c.in), &e))
			u, ok, err := readEntry(e, DefaultLifetime)
			assert.Equal(t, c.want != pool.Upstream{}, ok)
			assert.Equal(t, c.want, u)
			if c.err == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, c.err)
			}
		})
	}
}

func TestReadTellsOfAFewFlawsOnly(t *testing.T) {
	c := &consul{lifetime: DefaultLifetime}
	a := c.read([]*api.ServiceEntry{nil, nil, nil, nil, nil, nil, nil, {Service: &api.AgentService{Address: "a", Port: 1}}})
	assert.Equal(t, "a", names(a.upstreams))
	assert.ErrorContains(t, a.flaw, "an instance that is null\nand 2 more")
}

func TestFactsRefuse(t *testing.T) {
	for _, c := range [][2]string{
		{"weight", "-1"}, {"weight", "NaN"}, {"weight", "1e7"}, {"weight", ""},
		{"cores", "-1"}, {"cores", "65537"}, {"cores", "1.5"},
		{"started_at", "-1"}, {"started_at", "NaN"}, {"started_at", "253402300800"}, {"started_at", "2026-03-01"},
		{"stops_at", "0000-01-01T00:00:00Z"}, {"stops_at", "9999-12-31T23:59:59-01:00"},
		{"preemptible", "maybe"}, {"draining", ""}, {"colour", "blue"},
	} {
		var f facts
		assert.ErrorContains(t, f.learn(c[0], c[1]), c[0]+"=")
		assert.Equal(t, facts{}, f, "a wrong value changes nothing")
	}
}

// FuzzMeta holds that whatever an instance tells of itself, the upstream is valid and
// survives the snapshot.
func FuzzMeta(f *testing.F) {
	f.Add("16", "2026-03-01T10:00:00Z", "1772445600", "true", "false", "10.0.0.1", 9001)
	f.Add("", "1e10", "253402300799.999999999", "1", "T", "::1", 1)
	f.Add("-1", "9999-12-31T23:59:59Z", "NaN", "x", "", "a b", 0)
	f.Fuzz(func(t *testing.T, cores, started, stops, preemptible, draining, host string, port int) {
		e := &api.ServiceEntry{Service: &api.AgentService{Address: host, Port: port, Meta: map[string]string{
			"cores": cores, "started_at": started, "stops_at": stops, "preemptible": preemptible, "draining": draining,
		}}}
		u, ok, err := readEntry(e, DefaultLifetime)
		if !ok {
			require.Error(t, err)
			return
		}
		checked := u
		require.NoError(t, check(&checked))
		require.Equal(t, u, checked)
		data, err := json.Marshal(u)
		require.NoError(t, err)
		var back pool.Upstream
		require.NoError(t, json.Unmarshal(data, &back))
		require.True(t, same([]pool.Upstream{u}, []pool.Upstream{back}), "%s", data)
	})
}
