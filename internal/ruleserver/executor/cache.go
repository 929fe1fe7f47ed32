package executor

import (
	"container/list"
	"time"
)

// entryOverhead is the size of an entry in addition to its result, in bytes.
// It also bounds the number of empty results.
const entryOverhead = 256

// cache stores results of joblets up to a number of bytes. It evicts
// the oldest entries, even if jobs still use them (thesis, 3.5).
type cache struct {
	limit, used int64
	order       list.List // of *Cached, the oldest first
	entries     map[Key]*list.Element
	changes     uint64 // of the set of entries
	evictions   uint64
}

// Cached is a result with the key of its joblet.
type Cached struct {
	Key    Key
	Result Result
	Added  time.Time
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, entries: map[Key]*list.Element{}}
}

func (c *cache) get(key Key) (Result, bool) {
	element := c.entries[key]
	if element == nil {
		return Result{}, false
	}
	return element.Value.(*Cached).Result, true
}

// put adds a result, unless it is larger than the whole cache. A FeedSource
// removes the results of the project's other versions.
func (c *cache) put(now time.Time, key Key, result Result) {
	if c.entries[key] != nil || result.Bytes+entryOverhead > c.limit {
		return
	}
	if key.Kind == FeedSource {
		for old, element := range c.entries {
			if old.Project == key.Project && old.Version != key.Version {
				c.remove(element)
			}
		}
	}
	for c.used+result.Bytes+entryOverhead > c.limit {
		c.remove(c.order.Front())
		c.evictions++
	}
	c.entries[key] = c.order.PushBack(&Cached{key, result, now})
	c.used += result.Bytes + entryOverhead
	c.changes++
}

func (c *cache) remove(element *list.Element) {
	e := c.order.Remove(element).(*Cached)
	delete(c.entries, e.Key)
	c.used -= e.Result.Bytes + entryOverhead
	c.changes++
}

func (c *cache) clear() {
	for c.order.Len() > 0 {
		c.remove(c.order.Front())
	}
}

// projects returns the cached data of projects, the oldest first.
func (c *cache) projects() (projects []Cached) {
	for element := c.order.Front(); element != nil; element = element.Next() {
		if one := element.Value.(*Cached); one.Key.Kind == FeedSource {
			projects = append(projects, *one)
		}
	}
	return projects
}
