package sim

import "time"

// cache holds joblets' results in a bounded number of bytes and evicts the oldest first (the thesis, 3.5). It also
// records when each project was added and evicted, so a listing as of an earlier instant needs no copy.
type cache struct {
	limit, used int64
	pool        Containers // replaces limit
	entries     map[key]int64
	order       []key // by age, oldest first; holds each entry once
	listed      map[uint64]stay
}

// stay is the last period in which a project's data was cached; out is never while it still is.
type stay struct {
	version, bytes int64
	in, out        time.Duration
}

const never = time.Duration(1<<63 - 1)

func newCache(fleet *Fleet) cache {
	return cache{limit: int64(fleet.Cache), pool: fleet.Containers, entries: make(map[key]int64), listed: make(map[uint64]stay)}
}

func (c *cache) has(k key) bool {
	_, ok := c.entries[k]
	return ok
}

// put adds a result unless it is cached already, and returns the number of results it evicted.
func (c *cache) put(k key, bytes int64, now time.Duration) (evicted int) {
	if c.pool.Most > 0 {
		return c.create(k, bytes, now)
	}
	if bytes > c.limit || c.has(k) {
		return 0
	}
	for ; c.used+bytes > c.limit; evicted++ {
		c.used -= c.entries[c.order[0]]
		c.evict(now)
	}
	c.entries[k] = bytes
	c.order = append(c.order, k)
	c.used += bytes
	if k.phase == feedSource {
		c.listed[k.project] = stay{version: k.version, bytes: bytes, in: now, out: never}
	}
	return evicted
}

// evict removes the first result of the order.
func (c *cache) evict(now time.Duration) {
	oldest := c.order[0]
	c.order = c.order[1:]
	delete(c.entries, oldest)
	if s := c.listed[oldest.project]; oldest.phase == feedSource && s.version == oldest.version {
		s.out = now
		c.listed[oldest.project] = s
	}
}

// listing is the set of projects in the cache at one instant. It implements pool.CacheSet.
type listing struct {
	cache *cache
	at    time.Duration
}

// Contains reports whether the project was in the cache.
func (l *listing) Contains(project uint64) bool {
	s, ok := l.cache.listed[project]
	return ok && s.in <= l.at && l.at < s.out
}

// Bytes returns the size of the project's data.
func (l *listing) Bytes(project uint64) float64 { return float64(l.cache.listed[project].bytes) }

// Len returns the number of projects ever cached; no simulation needs the number at one instant.
func (l *listing) Len() int { return len(l.cache.listed) }
