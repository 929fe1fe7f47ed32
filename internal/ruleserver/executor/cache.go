package executor

import (
	"container/list"
	"time"
)

// entryOverhead is the size that an entry has in addition to its result, in bytes.
// It bounds the number of empty results too.
const entryOverhead = 256

// cache holds the results of joblets, up to a number of bytes. To make room it
// evicts the oldest entries, also those that jobs still use (thesis, 3.5).
type cache struct {
	limit, used int64
	order       list.List // of *entry, the oldest first
	entries     map[Key]*list.Element
	projects    map[string]map[Key]bool // the keys of each project's entries
	evictions   uint64
	changes     uint64 // of the set of entries
}

type entry struct {
	key    Key
	result Result
	added  time.Time
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, entries: map[Key]*list.Element{}, projects: map[string]map[Key]bool{}}
}

func (c *cache) get(key Key) (Result, bool) {
	element := c.entries[key]
	if element == nil {
		return Result{}, false
	}
	return element.Value.(*entry).result, true
}

// put adds a result, unless it is larger than the whole cache. A FeedSource
// removes the results of the project's other versions.
func (c *cache) put(now time.Time, key Key, result Result) {
	if c.entries[key] != nil || result.Bytes+entryOverhead > c.limit {
		return
	}
	if key.Kind == FeedSource {
		for old := range c.projects[key.Project] {
			if old.Version != key.Version {
				c.remove(c.entries[old])
			}
		}
	}
	for c.used+result.Bytes+entryOverhead > c.limit {
		c.remove(c.order.Front())
		c.evictions++
	}
	c.entries[key] = c.order.PushBack(&entry{key, result, now})
	if c.projects[key.Project] == nil {
		c.projects[key.Project] = map[Key]bool{}
	}
	c.projects[key.Project][key] = true
	c.used += result.Bytes + entryOverhead
	c.changes++
}

func (c *cache) remove(element *list.Element) {
	e := c.order.Remove(element).(*entry)
	delete(c.entries, e.key)
	if keys := c.projects[e.key.Project]; len(keys) > 1 {
		delete(keys, e.key)
	} else {
		delete(c.projects, e.key.Project)
	}
	c.used -= e.result.Bytes + entryOverhead
	c.changes++
}

func (c *cache) clear() {
	for c.order.Len() > 0 {
		c.remove(c.order.Front())
	}
}

// CachedProject is a project whose data is in the cache.
type CachedProject struct {
	Project string
	Version int64
	Bytes   int64
	Added   time.Time
}

// listProjects returns the projects whose data is cached, the oldest first.
func (c *cache) listProjects() []CachedProject {
	projects := make([]CachedProject, 0, len(c.projects))
	for element := c.order.Front(); element != nil; element = element.Next() {
		if e := element.Value.(*entry); e.key.Kind == FeedSource {
			projects = append(projects, CachedProject{e.key.Project, e.key.Version, e.result.Bytes, e.added})
		}
	}
	return projects
}

// Changes counts the changes of the cache. It grows with each one.
func (e *Executor) Changes() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.cache.changes
}

// Projects returns the projects whose data is cached, the oldest first, and the
// number of changes of the cache so far.
func (e *Executor) Projects() (projects []CachedProject, changes uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.cache.listProjects(), e.machine.cache.changes
}

// Cached is a result with the key of its joblet.
type Cached struct {
	Key    Key
	Result Result
}

// ReplaceCache empties the cache and adds these results, the first one as the
// oldest. Results that do not fit push out older ones.
func (e *Executor) ReplaceCache(results []Cached) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.cache.clear()
	for _, r := range results {
		e.machine.cache.put(time.Now(), r.Key, r.Result)
	}
}
