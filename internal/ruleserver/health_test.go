package ruleserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/ruleserver/executor"
)

func TestHealthOfTheServer(t *testing.T) {
	stalled := 0
	s := newServer(t, func(c *Config) {
		c.AdjustLoad = func(l *executor.Load) { l.Stalled = [2]int{1, stalled - 1} }
	})
	now := time.Now()
	for _, c := range []struct {
		stalled int
		stops   time.Time
		want    Health
		why     string
	}{
		{100, time.Time{}, Passing, "100 stalled joblets"},
		{101, time.Time{}, Warning, "overloaded: 101 stalled joblets, and the limit is 100"},
		{1, now.Add(31 * time.Second), Passing, "1 stalled joblets"},
		{101, now.Add(30 * time.Second), Critical, "stops in 30s"},
		{1, now.Add(-time.Second), Critical, "stops in 0s"},
	} {
		stalled = c.stalled
		got, why := s.Health(now, 100, c.stops)
		assert.Equal(t, c.want, got, "%+v", c)
		assert.Equal(t, c.why, why)
	}
	s.Drain()
	got, _ := s.Health(now, 100, time.Time{})
	assert.Equal(t, Critical, got)
}
