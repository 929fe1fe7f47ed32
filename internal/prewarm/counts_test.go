package prewarm

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// noteN counts jobs of one project.
func noteN(c *counts, now time.Time, upstream string, key uint64, jobs int) {
	for range jobs {
		c.note(now, upstream, key, intake.NewText(strconv.FormatUint(key, 10)))
	}
}

// listed is the busiest projects in short: key x jobs.
func listed(c *counts, now time.Time, upstream string) (all []string) {
	for _, t := range c.busiest(now, upstream) {
		all = append(all, t.id.String()+"x"+strconv.Itoa(t.jobs))
	}
	return all
}

func TestBusiest(t *testing.T) {
	c := newCounts()
	noteN(c, epoch, "a", 1, 2)
	noteN(c, epoch, "a", 2, 5)
	noteN(c, epoch, "b", 3, 9)
	noteN(c, epoch, "a", 4, 2)
	assert.Equal(t, []string{"2x5", "1x2", "4x2"}, listed(c, epoch, "a"))
	assert.Equal(t, []string{"3x9"}, listed(c, epoch, "b"))
	assert.Empty(t, listed(c, epoch, "c"))

	next := epoch.Add(span)
	noteN(c, next, "a", 1, 4)
	noteN(c, next, "a", 5, 1)
	assert.Equal(t, []string{"1x6", "2x5", "4x2", "5x1"}, listed(c, next, "a"), "both spans count")
	assert.Equal(t, []string{"1x4", "5x1"}, listed(c, next.Add(span), "a"), "and no others")

	c = newCounts()
	noteN(c, epoch, "a", 1, 1)
	assert.NotEmpty(t, listed(c, epoch.Add(2*span-1), "a"))
	c = newCounts()
	noteN(c, epoch, "a", 1, 1)
	assert.Empty(t, listed(c, epoch.Add(2*span), "a"), "nothing happened for a whole span")
}

func TestCountsAreBounded(t *testing.T) {
	c := newCounts()
	for key := range uint64(2 * maxCounts) {
		noteN(c, epoch, "a", key, 1)
	}
	assert.Len(t, c.busiest(epoch, "a"), maxCounts)
	noteN(c, epoch, "a", 1, 1)
	assert.Equal(t, uint64(1), c.busiest(epoch, "a")[0].key, "what is in it still counts")
}
