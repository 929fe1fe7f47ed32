package discovery

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func TestParseList(t *testing.T) {
	want := []pool.Upstream{
		{Address: "b:2", Weight: 2.5, Cores: 16, Draining: true},
		{Address: "a:1", StartedAt: epoch, StopsAt: epoch.Add(time.Hour)},
	}
	for name, text := range map[string]string{
		"lines": "# the rules\n\n b:2  weight=2.5 cores=16\tdraining=true # going\r\nA:1 preemptible=true started_at=2026-03-01T12:00:00Z",
		"JSON": ` [{"address":"b:2","weight":2.5,"cores":16,"draining":true},
			{"address":"a:1","started_at":"2026-03-01T13:00:00+01:00","stops_at":"2026-03-01T13:00:00Z"}]` + "\n",
	} {
		got, err := parseList([]byte(text), time.Hour)
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
	for _, empty := range []string{"", "\n# none\n", "[]", "\n [ ]\n"} {
		got, err := parseList([]byte(empty), time.Hour)
		require.NoError(t, err)
		assert.Empty(t, got)
	}
}

func TestParseListNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"a:1\nb":            `line 2: address "b": want host:port`,
		"a:1\n\nb:1 weight": `line 3: "weight": want key=value`,
		"a:1 weight=x":      `line 1: weight="x": want a number from 0 to 1e+06`,
		"a:1 colour=blue":   `line 1: colour="blue": unknown key`,
		"\x00\xff":          `line 1: address "\x00\xff": want host:port`,
		"[\n{\"address\":\"a:1\"},\n  {\"address\":\"b\"}]":               `line 3: address "b": want host:port`,
		"[\n{\"address\":\"a:1\"},\n\n{\"address\":\"b:1\",\n\"x\":1}]":   `line 4: json: unknown field "x"`,
		"[\n{\"address\":\"a:1\",\n\"weight\":-1}]":                       `line 2: weight -1: want a number from 0 to 1e+06`,
		"[\n{\"address\":\"a:1\"},\n{\"address\":\"a:1\",\"cores\":1e9}]": `line 3: json: cannot unmarshal number 1e9 into Go struct field Upstream.cores of type int`,
		"[\n{\"address\":\"a:1\"},\n{\"cores\":-1,\"address\":\"a:1\"}]":  `line 3: cores -1: want a number from 0 to 65536`,
		"[\n{\"address\":\n":          `line 3: unexpected EOF`,
		"[\n":                         `line 2: unexpected EOF`,
		"[\n{\"address\":\"a:1\"}\n}": `line 3: invalid character '}' after array element`,
		"[\n{]":                       `line 2: invalid character ']' looking for beginning of object key string`,
		"[]\nx":                       `line 2: something follows the list`,
		"[]\n[]":                      `line 2: something follows the list`,
	} {
		_, err := parseList([]byte(text), time.Hour)
		assert.EqualError(t, err, want, text)
	}
}

// FuzzList holds that a list that is accepted is valid, and that a JSON list says
// the same when written and read again.
func FuzzList(f *testing.F) {
	f.Add([]byte("a:1\nb:2 weight=2 # c"))
	f.Add([]byte(`[{"address":"a:1","started_at":"2026-03-01T12:00:00Z"}]`))
	f.Add([]byte("[\n{]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseList(text, time.Hour)
		if err != nil {
			require.Regexp(t, `^line [0-9]+: `, err.Error())
			return
		}
		for _, u := range list {
			checked := u
			require.NoError(t, check(&checked))
			require.Equal(t, u.Address, checked.Address)
		}
		if list == nil {
			list = []pool.Upstream{}
		}
		data, err := json.Marshal(list)
		require.NoError(t, err)
		again, err := parseList(data, time.Hour)
		require.NoError(t, err, "%s", data)
		require.True(t, same(list, again))
	})
}
