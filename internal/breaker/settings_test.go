package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	assert.Equal(t, Settings{Failures: 5, Open: 5 * time.Second, OpenMax: time.Minute}, Default())
	_, err := New(Config{Settings: Default(), Rand: testRNG(1)})
	require.NoError(t, err)
}

func TestSettingsRefuseNonsense(t *testing.T) {
	with := func(change func(*Settings)) Settings {
		s := Default()
		change(&s)
		return s
	}
	for _, c := range []struct {
		settings Settings
		want     string
	}{
		{with(func(s *Settings) { s.Failures = 0 }), "breaker.failures: 0 is not between 1 and 1000000"},
		{with(func(s *Settings) { s.Failures = -1 }), "breaker.failures: -1 is not between 1 and 1000000"},
		{with(func(s *Settings) { s.Failures = 1_000_001 }), "breaker.failures: 1000001 is not between 1 and 1000000"},
		{with(func(s *Settings) { s.Open = -time.Second }), "breaker.open: -1s is not between 1ms and 24h0m0s"},
		{with(func(s *Settings) { s.Open = time.Microsecond }), "breaker.open: 1µs is not between 1ms and 24h0m0s"},
		{with(func(s *Settings) { s.Open = 2 * time.Minute }), "breaker.open_max: 1m0s is less than breaker.open, 2m0s"},
		{with(func(s *Settings) { s.OpenMax = time.Second }), "breaker.open_max: 1s is less than breaker.open, 5s"},
		{with(func(s *Settings) { s.OpenMax = 25 * time.Hour }), "breaker.open_max: 25h0m0s is more than 24h0m0s"},
	} {
		_, err := New(Config{Settings: c.settings, Rand: testRNG(1)})
		assert.EqualError(t, err, c.want)
	}
	for _, extreme := range []Settings{{Failures: 1, Open: minOpen, OpenMax: minOpen}, {Failures: maxFailures, Open: maxOpen, OpenMax: maxOpen}} {
		_, err := New(Config{Settings: extreme, Rand: testRNG(1)})
		assert.NoError(t, err)
	}
	_, err := New(Config{Settings: Default()})
	assert.EqualError(t, err, "breaker: Rand is required")
}

// Failures is not waited for where no connection can be made.
func TestAnUnreachableUpstreamOpensItAtOnce(t *testing.T) {
	f := newFixture(t, Default())
	f.try(Healthy, Unreachable)
	assert.Equal(t, Open, f.state())
	first := f.sleepOpen()
	f.try(Unreachable)
	assert.Greater(t, f.sleepOpen(), first, "a probe that finds it so makes the time longer")
}
