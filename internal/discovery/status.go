package discovery

import "time"

// Status is what discovery tells about itself. The age of the set is the
// time since HeardAt.
type Status struct {
	// Source names where upstreams come from.
	Source string
	// Upstreams counts the set in force.
	Upstreams int
	// HeardAt is when the source last gave an answer that was believed in full;
	// zero before the first.
	HeardAt time.Time
	// AppliedAt is when the set in force was last changed; zero before the first.
	AppliedAt time.Time
	// FromSnapshot says that the set in force was read from the snapshot, and
	// that the source has not been believed since.
	FromSnapshot bool
	// Doubt is why the last answer was not believed in full.
	Doubt Doubt
	// Err is why there was no last answer; nil when there was one.
	Err error
	// Flaw is what of the last answer was left out because it is wrong; nil if nothing was.
	Flaw error
	// SnapshotErr is why the snapshot could not be read or written last; nil when it could.
	SnapshotErr error
	// Applied counts changes of the set, Refused the answers in doubt, Failed
	// the answers that did not come.
	Applied, Refused, Failed uint64
}
