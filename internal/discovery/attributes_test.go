package discovery

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func TestAttributesRefuse(t *testing.T) {
	for _, c := range [][2]string{
		{"weight", "-1"}, {"weight", "NaN"}, {"weight", "1e7"}, {"weight", ""},
		{"cores", "-1"}, {"cores", "65537"}, {"cores", "1.5"},
		{"started_at", "-1"}, {"started_at", "NaN"}, {"started_at", "253402300800"}, {"started_at", "2026-03-01"},
		{"stops_at", "0000-01-01T00:00:00Z"}, {"stops_at", "9999-12-31T23:59:59-01:00"},
		{"preemptible", "maybe"}, {"draining", ""}, {"colour", "blue"},
	} {
		var a attributes
		assert.ErrorContains(t, a.set(c[0], c[1]), c[0]+"=")
		assert.Equal(t, attributes{}, a, "a wrong value changes nothing")
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
		u, ok, err := readEntry(e)
		if !ok {
			require.Error(t, err)
			return
		}
		back, err := parseList("f", appendLine(nil, u))
		require.NoError(t, err)
		require.True(t, same([]pool.Upstream{u}, back), "%v", u)
	})
}
