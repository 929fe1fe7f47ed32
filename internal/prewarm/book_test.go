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
func noteN(b *book, now time.Time, upstream string, key uint64, jobs int) {
	for range jobs {
		b.note(now, upstream, key, intake.NewText(strconv.FormatUint(key, 10)))
	}
}

// listed is the busiest projects in short: key x jobs.
func listed(b *book, now time.Time, upstream string) (all []string) {
	for _, t := range b.busiest(now, upstream) {
		all = append(all, t.id.String()+"x"+strconv.Itoa(t.jobs))
	}
	return all
}

func TestBusiest(t *testing.T) {
	b := newBook()
	noteN(b, epoch, "a", 1, 2)
	noteN(b, epoch, "a", 2, 5)
	noteN(b, epoch, "b", 3, 9)
	noteN(b, epoch, "a", 4, 2)
	assert.Equal(t, []string{"2x5", "1x2", "4x2"}, listed(b, epoch, "a"))
	assert.Equal(t, []string{"3x9"}, listed(b, epoch, "b"))
	assert.Empty(t, listed(b, epoch, "c"))

	next := epoch.Add(span)
	noteN(b, next, "a", 1, 4)
	noteN(b, next, "a", 5, 1)
	assert.Equal(t, []string{"1x6", "2x5", "4x2", "5x1"}, listed(b, next, "a"), "both spans count")
	assert.Equal(t, []string{"1x4", "5x1"}, listed(b, next.Add(span), "a"), "and no others")
	assert.Empty(t, listed(b, next.Add(4*span), "a"))
}

func TestBookIsBounded(t *testing.T) {
	b := newBook()
	for key := range uint64(2 * maxTallies) {
		noteN(b, epoch, "a", key, 1)
	}
	assert.Len(t, b.busiest(epoch, "a"), maxTallies)
	noteN(b, epoch, "a", 1, 1)
	assert.Equal(t, uint64(1), b.busiest(epoch, "a")[0].key, "what is in it still counts")
}

func TestQueuePacesEachUpstream(t *testing.T) {
	q := newQueue(time.Second)
	q.add([]Prefetch{{"1", "a", "x"}, {"2", "a", "x"}, {"3", "b", "x"}})
	assert.ElementsMatch(t, []Prefetch{{"1", "a", "x"}, {"3", "b", "x"}}, q.due(epoch))
	q.add([]Prefetch{{"4", "b", "y"}})
	assert.Empty(t, q.due(epoch.Add(time.Second-1)))
	assert.ElementsMatch(t, []Prefetch{{"2", "a", "x"}, {"4", "b", "y"}}, q.due(epoch.Add(time.Second)))
	assert.Empty(t, q.due(epoch.Add(time.Hour)))
	assert.Empty(t, q.of)
	assert.Empty(t, q.last, "nothing is remembered of upstreams that have their turn again")

	q.add(make([]Prefetch, 2*maxWaiting))
	q.add(make([]Prefetch, 1))
	assert.Equal(t, maxWaiting, q.waiting)
}
