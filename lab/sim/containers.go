package sim

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Containers makes an upstream's cache a container pool, as in the OpenWhisk scheduling proposal: a project is an
// action, and the fetch of its data is a cold start. Nothing else is cached.
type Containers struct {
	// Most is the maximum number of containers of an upstream; 0 is no container pool.
	Most int `yaml:"most"`
	// Keep is how long a container without jobs is reserved for its action. Then it is removed.
	Keep time.Duration `yaml:"keep"`
	// Overcommit lets an action without a container take the place of the reserved one that was used the longest ago. Otherwise,
	// while all are reserved, each job of the action has a cold start, and its container is removed.
	Overcommit bool `yaml:"overcommit"`
}

func (v Containers) check(f *settings.Faults) {
	f.Within("most", v.Most, 0, 1<<20)
	if v.Most > 0 {
		f.Positive("keep", v.Keep)
	} else if v != (Containers{}) {
		f.Add("most", "keep and overcommit are those of a container pool")
	}
}

// use reports whether a result is cached. In a container pool, a container that is used is reserved anew.
func (c *cache) use(k key, now time.Duration) bool {
	c.expire(now)
	if c.pool.Most > 0 && c.has(k) {
		c.order = append(slices.DeleteFunc(c.order, func(other key) bool { return other == k }), k)
		c.entries[k] = int64(now)
	}
	return c.has(k)
}

// expire removes the containers that are no longer reserved.
func (c *cache) expire(now time.Duration) {
	for c.pool.Most > 0 && len(c.order) > 0 && time.Duration(c.entries[c.order[0]])+c.pool.Keep <= now {
		c.evict(now)
	}
}

// create adds a container, and returns the number of containers that it removed. entries holds the times of their last use.
func (c *cache) create(k key, bytes int64, now time.Duration) (evicted int) {
	c.expire(now)
	full := len(c.order) >= c.pool.Most
	if k.phase != feedSource || c.has(k) || full && !c.pool.Overcommit {
		return 0
	}
	if full {
		c.evict(now)
		evicted = 1
	}
	c.entries[k] = int64(now)
	c.order = append(c.order, k)
	c.listed[k.project] = stay{version: k.version, bytes: bytes, in: now, out: never}
	return evicted
}
