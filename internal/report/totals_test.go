package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMeanIsOfTheDifference(t *testing.T) {
	inf := math.Inf(1)
	nan := math.NaN()
	for _, c := range []struct {
		name        string
		before, now total
		want        float64
	}{
		{"new jobs", total{10, 5}, total{16, 8}, 2},
		{"instant jobs", total{10, 5}, total{10, 8}, 0},
		{"from the first on", total{0, 0}, total{6, 3}, 2},
		{"no new jobs", total{10, 5}, total{10, 5}, nan},
		{"restarted", total{10, 5}, total{1, 2}, nan},
		{"restarted, with as many jobs since", total{10, 5}, total{1, 6}, nan},
		{"not known before", unknown, total{1, 2}, nan},
		{"not known now", total{1, 2}, unknown, nan},
		{"an infinite sum", total{1, 2}, total{inf, 3}, nan},
		{"an infinite count", total{1, 2}, total{3, inf}, nan},
		{"infinite twice", total{inf, 2}, total{inf, 3}, nan},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.now.mean(c.before)
			if math.IsNaN(c.want) {
				assert.True(t, math.IsNaN(got), "%v", got)
				return
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestResponseIsWaitAndExecutionWhereItIsNotTold(t *testing.T) {
	before := totals{wait: total{0, 0}, execution: total{0, 0}, response: unknown}
	now := totals{wait: total{4, 2}, execution: total{9, 3}, response: unknown}
	wait, response := now.since(before)
	assert.Equal(t, 2.0, wait)
	assert.Equal(t, 5.0, response)

	before.response, now.response = total{0, 0}, total{28, 4}
	_, response = now.since(before)
	assert.Equal(t, 7.0, response)
}
