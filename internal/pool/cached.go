package pool

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

// ListingIntervals is how long a cache listing counts, in report intervals: longer than a report's load, because a cache
// changes more slowly.
const ListingIntervals = 4 * loadIntervals

// belief is the probability that data is cached.
var belief = [...]float64{selection.NotCached: 0, selection.AssumedCached: 0.95, selection.Cached: 1}

// cached is what is known of the cache of one upstream.
type cached struct {
	listing CacheSet  // the last one that was believed; nil is none
	at      time.Time // when it was made
	tooLong string    // why the last listing was not believed; "" if it was
	// assumed are the projects whose jobs were sent here and that no listing has confirmed or refuted, with the time
	// of the claim. The earliest are forgotten when there are too many.
	assumed recent.Keys
	prompts prompts.Server
}

// forget empties the cache of an upstream that has restarted.
func (c *cached) forget() {
	c.listing, c.at, c.tooLong, c.assumed = nil, time.Time{}, "", recent.Keys{}
	c.prompts.Restarted()
}

// replace stores a listing and drops the assumptions that it confirms or refutes. It refutes a project that it does not
// contain if it was made more than two fetch times after the claim.
func (c *cached) replace(at time.Time, listing CacheSet, fetchTime func(project uint64) float64) {
	c.listing, c.at, c.tooLong = listing, at, ""
	c.assumed.DropFunc(at, func(part uint64, since time.Duration) bool {
		return listing.Contains(part) || since > seconds(2*fetchTime(part))
	})
}

// len is the number of projects in the listing.
func (c *cached) len() int {
	if c.listing == nil {
		return 0
	}
	return c.listing.Len()
}

// counts reports whether the listing is recent enough to be used.
func (c *cached) counts(now time.Time, interval time.Duration) bool {
	return c.listing != nil && now.Sub(c.at) <= ListingIntervals*interval
}

// bytes is the size of a part in the listing, however old; 0 is unknown.
func (c *cached) bytes(part uint64) float64 {
	if c.listing == nil || !c.listing.Contains(part) {
		return 0
	}
	if bytes := c.listing.Bytes(part); saneBytes(bytes) {
		return bytes
	}
	return 0
}

// has returns whether a part is cached. listed says that the listing counts.
func (c *cached) has(part uint64, listed bool) selection.Cache {
	if listed && c.listing.Contains(part) {
		return selection.Cached
	}
	if c.assumed.Has(part) {
		return selection.AssumedCached
	}
	return selection.NotCached
}

// holding is what an upstream has cached of a job's data.
type holding struct {
	warm  float64         // share of the bytes
	first int32           // number of cached parts before the first that is not
	cache selection.Cache // whether the part that places the job is cached
}

// holds returns what is cached of a job's data. It changes only n, which gets the listed size of a project.
func (c *cached) holds(now time.Time, n *need, interval time.Duration) (h holding) {
	if n.prompt != nil {
		hit := c.prompts.Hit(now, n.prompt)
		switch {
		case hit.Reported:
			h.cache = selection.Cached
		case hit.Placed:
			h.cache = selection.AssumedCached
		}
		h.warm = hit.Share
		return h
	}
	d, listed := &n.data, c.counts(now, interval)
	for i := range d.parts {
		part := &d.parts[i]
		here := c.has(part.Key, listed)
		if part.Key == n.project.id {
			h.cache = here
		}
		if here == selection.Cached && !d.set {
			if bytes := c.listing.Bytes(part.Key); saneBytes(bytes) {
				d.listed = bytes
			}
		}
		if int(h.first) == i && here != selection.NotCached {
			h.first++
		}
		h.warm += belief[here] * part.Bytes
	}
	h.warm /= d.bytes
	return h
}

// take assumes that parts are cached, because a job that needs them is sent here. An earlier assumption keeps its time, so
// that a listing can refute it. Without listings the time is that of the last job, so that parts in use are kept.
func (c *cached) take(now time.Time, parts []intake.Part, interval time.Duration) {
	listed := c.counts(now, interval)
	for i := range parts {
		key := parts[i].Key
		if here := c.has(key, listed); here == selection.NotCached || here == selection.AssumedCached && c.listing == nil {
			c.assumed.Put(key, now)
		}
	}
}

// longListing returns why a listing of n projects is not believed beside the longest one of the other upstreams; "" if it
// is believed.
func longListing(n, most int) string {
	if n <= manyListed || most == 0 || n/maxTimes <= most {
		return ""
	}
	return fmt.Sprintf("%d cached projects, more than %d times as many as others", n, maxTimes)
}
