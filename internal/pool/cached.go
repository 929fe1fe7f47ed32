package pool

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

// ListingIntervals is how long a cache listing is used, in report intervals: longer than the load in a report, because
// a cache changes more slowly.
const ListingIntervals = 4 * loadIntervals

// belief is the probability that data is cached, by its cache status.
var belief = [...]float64{selection.NotCached: 0, selection.AssumedCached: 0.95, selection.Cached: 1}

// cached is the known or assumed contents of one upstream's cache.
type cached struct {
	listing CacheSet  // the last credible listing; nil if there is none
	at      time.Time // when it was made
	tooLong string    // why the last listing was not credible; "" if it was
	// assumed holds the projects whose jobs were sent here and that no later listing has confirmed or refuted, with the
	// time of the claim. The earliest are dropped when there are too many.
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

// listingFresh reports whether the listing is recent enough to be used.
func (c *cached) listingFresh(now time.Time, interval time.Duration) bool {
	return c.listing != nil && now.Sub(c.at) <= ListingIntervals*interval
}

// listedBytes is the size of a part in the listing, however old; 0 is unknown.
func (c *cached) listedBytes(part uint64) float64 {
	if c.listing == nil || !c.listing.Contains(part) {
		return 0
	}
	return c.bytes(part)
}

// bytes returns the size of a part that the listing contains; 0 is unknown.
func (c *cached) bytes(part uint64) float64 {
	if bytes := c.listing.Bytes(part); plausibleBytes(bytes) {
		return bytes
	}
	return 0
}

// status returns whether a part is cached. listed is set if the listing is fresh.
func (c *cached) status(part uint64, listed bool) selection.Cache {
	if listed && c.listing.Contains(part) {
		return selection.Cached
	}
	if c.assumed.Has(part) {
		return selection.AssumedCached
	}
	return selection.NotCached
}

// hit is the part of a job's data that an upstream has cached.
type hit struct {
	share   float64         // share of the bytes
	leading int32           // number of parts before the first uncached one
	status  selection.Cache // cache status of the part that places the job
}

// lookUp returns what is cached of a job's data. bytes is the size of a project in the listing; 0 is unknown, or no project.
func (c *cached) lookUp(now time.Time, n *need, interval time.Duration) (h hit, bytes float64) {
	if n.prompt != nil {
		hit := c.prompts.Hit(now, n.prompt)
		switch {
		case hit.Reported:
			h.status = selection.Cached
		case hit.Placed:
			h.status = selection.AssumedCached
		}
		h.share = hit.Share
		return h, 0
	}
	d, fresh := &n.data, c.listingFresh(now, interval)
	for i := range d.parts {
		part := &d.parts[i]
		here := c.status(part.Key, fresh)
		if part.Key == n.project.id {
			h.status = here
		}
		if here == selection.Cached && !d.set {
			bytes = c.bytes(part.Key)
		}
		if int(h.leading) == i && here != selection.NotCached {
			h.leading++
		}
		h.share += belief[here] * part.Bytes
	}
	h.share /= d.bytes
	return h, bytes
}

// assume assumes that parts are cached, because a job that needs them is sent here. If upstreams send listings, a
// repeated assumption keeps its first time, so that a listing can refute it. Without listings it gets the new time, so
// that parts in use are kept.
func (c *cached) assume(now time.Time, parts []intake.Part, interval time.Duration) {
	listed := c.listingFresh(now, interval)
	for i := range parts {
		key := parts[i].Key
		if here := c.status(key, listed); here == selection.NotCached || here == selection.AssumedCached && c.listing == nil {
			c.assumed.Put(key, now)
		}
	}
}

// listingFault returns why a listing of n projects is not credible, given the length of the longest listing of the
// other upstreams; "" if it is credible.
func listingFault(n, most int) string {
	if n <= manyListed || most == 0 || n/maxTimes <= most {
		return ""
	}
	return fmt.Sprintf("%d cached projects, more than %d times as many as others", n, maxTimes)
}
