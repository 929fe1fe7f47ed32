package pool

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

// ListingIntervals is how long a cache listing counts, in intervals between two reports. It outlives the load of a report,
// because data does not leave a cache as fast as load changes.
const ListingIntervals = 4 * loadIntervals

// belief is the probability that data is there.
var belief = [...]float64{selection.NotCached: 0, selection.AssumedCached: 0.95, selection.Cached: 1}

// cached is what is known of the data at one upstream.
type cached struct {
	listing CacheSet  // the last one; nil is unknown
	at      time.Time // when it was made
	// tooLong is why the last listing cannot be true beside those of the others; "" is nothing.
	tooLong string
	// assumed are the projects whose jobs were sent here and that no listing names yet, by the time of the claim. Where no
	// listing ever confirms or refutes them, the earliest are forgotten.
	assumed recent.Keys
	prompts prompts.Server
}

// forget forgets the data of an upstream that has restarted.
func (c *cached) forget() {
	c.listing, c.at, c.tooLong, c.assumed = nil, time.Time{}, "", recent.Keys{}
	c.prompts.Restarted()
}

// replace takes a listing, and drops the assumptions that it confirms. It drops as well those that it refutes: a project
// that it does not name although it was made two fetch times after the claim.
func (c *cached) replace(at time.Time, listing CacheSet, fetchTime func(project uint64) float64) {
	c.listing, c.at, c.tooLong = listing, at, ""
	c.assumed.DropFunc(at, func(part uint64, since time.Duration) bool {
		return listing.Contains(part) || since > seconds(2*fetchTime(part))
	})
}

// len is how many projects the listing names.
func (c *cached) len() int {
	if c.listing == nil {
		return 0
	}
	return c.listing.Len()
}

// counts reports whether the listing is recent enough to choose by.
func (c *cached) counts(now time.Time, interval time.Duration) bool {
	return c.listing != nil && now.Sub(c.at) <= ListingIntervals*interval
}

// bytes is the size of a part by the listing, however old; 0 is unknown.
func (c *cached) bytes(part uint64) float64 {
	if c.listing == nil || !c.listing.Contains(part) {
		return 0
	}
	if bytes := c.listing.Bytes(part); saneBytes(bytes) {
		return bytes
	}
	return 0
}

// has says what is known of a part here, by the listing if that counts.
func (c *cached) has(part uint64, listed bool) selection.Cache {
	if listed && c.listing.Contains(part) {
		return selection.Cached
	}
	if c.assumed.Has(part) {
		return selection.AssumedCached
	}
	return selection.NotCached
}

// holding is what an upstream has cached of a job's data: the part that places the job, the share of all, and how many
// parts before the first one that is missing.
type holding struct {
	cache selection.Cache
	warm  float64
	first int
}

// holds returns what is here of the data. It changes nothing here: the size of a project goes into n.
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
		if h.first == i && here != selection.NotCached {
			h.first++
		}
		h.warm += belief[here] * part.Bytes
	}
	h.warm /= d.bytes
	return h
}

// take notes that the parts will be here, as a job that needs them goes here. A part that is assumed
// to be here already was claimed before, which a listing may refute; without one it is used anew.
func (c *cached) take(now time.Time, parts []intake.Part, interval time.Duration) {
	listed := c.counts(now, interval)
	for i := range parts {
		key := parts[i].Key
		if here := c.has(key, listed); here == selection.NotCached || here == selection.AssumedCached && c.listing == nil {
			c.assumed.Put(key, now)
		}
	}
}

// longListing is why a listing of n projects is not believed, if the longest of the other upstreams has most; "" if it is.
func longListing(n, most int) string {
	if n <= manyListed || most == 0 || n/maxTimes <= most {
		return ""
	}
	return fmt.Sprintf("%d cached projects, more than %d times as many as others", n, maxTimes)
}
