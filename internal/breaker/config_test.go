package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfigDefaults(t *testing.T) {
	got, err := Config{}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, Config{
		Failures: 5, Open: 5 * time.Second, OpenMax: time.Minute, Jitter: 0.2, Probe: time.Minute,
	}, got)
}

func TestConfigKeepsWhatIsGiven(t *testing.T) {
	given := Config{Failures: 1, Open: time.Second, OpenMax: time.Second, Jitter: 0.5, Probe: time.Hour}
	got, err := given.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, given, got)
}

func TestConfigRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Failures: -1}, "breaker: failures -1 is not between 1 and 1000000"},
		{Config{Failures: 1_000_001}, "breaker: failures 1000001 is not between 1 and 1000000"},
		{Config{Open: -time.Second}, "breaker: open -1s is not between 1ms and 24h0m0s"},
		{Config{Open: time.Microsecond}, "breaker: open 1µs is not between 1ms and 24h0m0s"},
		{Config{Open: 2 * time.Minute}, "breaker: open_max 1m0s is shorter than open 2m0s"},
		{Config{OpenMax: time.Second}, "breaker: open_max 1s is shorter than open 5s"},
		{Config{OpenMax: 25 * time.Hour}, "breaker: open_max 25h0m0s is longer than 24h0m0s"},
		{Config{Jitter: -0.1}, "breaker: jitter -0.1 is not between 0 and 1"},
		{Config{Jitter: 1}, "breaker: jitter 1 is not between 0 and 1"},
		{Config{Jitter: math.NaN()}, "breaker: jitter NaN is not between 0 and 1"},
		{Config{Probe: -1}, "breaker: probe -1ns is not between 1ms and 24h0m0s"},
	} {
		_, err := New(c.config, testRNG(1), nil)
		assert.EqualError(t, err, c.want)
	}
}
