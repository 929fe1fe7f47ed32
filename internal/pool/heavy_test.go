package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
)

// mixed returns three upstreams. The last one is for heavy jobs.
func mixed(t *testing.T, s HeavySettings) (*fixture, []Upstream) {
	f, us := newFixture(t, "expected", 0), upstreams(3)
	us[2].Heavy = true
	change := f.cfg.Settings
	change.Heavy = s
	f.SetSettings(change)
	f.Set(start, us)
	return f, us
}

func TestWhichJobsAreHeavy(t *testing.T) {
	f, us := mixed(t, HeavySettings{Projects: []string{"big"}, Bytes: 1 << 30, Expected: time.Minute})
	long, set := intake.Key("long"), &intake.Parts{Set: true, Parts: []intake.Part{{Key: intake.Key("big"), Bytes: 1}}}
	for range 30 {
		f.lengthOf(Request{Project: long}, time.Hour)
		f.lengthOf(Request{Project: 1}, time.Second)
	}
	r := map[string]Request{
		"its project": {Project: intake.Key("big")}, "its size": {Project: 1, Bytes: 1 << 30}, "its length": {Project: long},
		"the part that places it": {Project: 9, Data: set}, "small": {Project: 1, Bytes: 1<<30 - 1}, "no project": {Bytes: 1 << 40},
	}
	heavy := func() (names []string) {
		for name, r := range r {
			if f.IsHeavy(r) {
				names = append(names, name)
			}
		}
		return names
	}
	assert.ElementsMatch(t, []string{"its project", "its size", "its length", "the part that places it"}, heavy())
	for _, all := range []bool{false, true} {
		for i := range us {
			us[i].Heavy = all
		}
		f.Set(start, us)
		assert.Empty(t, heavy(), "all upstreams are heavy")
		f.must(start, Request{Project: 1}, nil)
	}
}

// A heavy job goes to an ordinary upstream only while no dedicated one is eligible. An ordinary job waits instead.
func TestHeavyJobs(t *testing.T) {
	f, us := mixed(t, HeavySettings{Projects: []string{"big"}})
	now := start
	there := func(heavy bool) (string, error) {
		a, err := f.Claim(now, Request{Project: intake.Key("big"), Heavy: heavy}, nil)
		if err != nil {
			return "", err
		}
		assert.Equal(t, []bool{heavy, heavy && a.Address == us[2].Address}, []bool{a.Heavy, a.Dedicated})
		a.Done(now, Moved)
		return a.Address, nil
	}
	ranked, err := f.Explain(start, Request{Project: intake.Key("big")})
	require.NoError(t, err)
	require.Len(t, ranked, 1)
	assert.Equal(t, []any{us[2].Address, true}, []any{ranked[0].Address, ranked[0].Heavy})
	at, err := there(true)
	require.NoError(t, err)
	assert.Equal(t, us[2].Address, at)
	f.shut(us[2].Address, true)
	at, err = there(true)
	require.NoError(t, err)
	assert.NotEqual(t, us[2].Address, at)

	f.shut(us[2].Address, false)
	for _, u := range us[:2] {
		f.Report(start, u.Address, report(start, 10, 1000))
	}
	_, err = there(false)
	require.ErrorIs(t, err, ErrNotAdmitted, "it waits, and heavy jobs pass it")
	assert.Equal(t, []Reason{Overloaded, Overloaded, Dedicated}, f.scratch.reasons)
	require.True(t, f.AllTried(start, NewAddressSet([]string{us[0].Address, us[1].Address}), false))
	require.False(t, f.AllTried(start, NewAddressSet([]string{us[0].Address, us[1].Address}), true))
	now = now.Add(time.Minute) // the reports are old
	for _, u := range us[:2] {
		f.shut(u.Address, true)
	}
	_, err = there(false)
	require.NoError(t, err, "the breakers of all upstreams that it may go to are open")
}

func TestHeavySettings(t *testing.T) {
	var f settings.Faults
	HeavySettings{Projects: []string{"a", "", strings.Repeat("x", 257)}, Bytes: -1, Expected: -time.Second}.Check(&f)
	var keys []string
	for _, fault := range f.All() {
		key, _, _ := strings.Cut(fault.Error(), ":")
		keys = append(keys, key)
	}
	assert.Equal(t, []string{"projects[1]", "projects[2]", "bytes", "expected"}, keys)
}
