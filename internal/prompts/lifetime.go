package prompts

import "time"

// lifetime is how long a server keeps a block after its last use; 0 means for ever. A cache that evicts the least
// recently used block keeps all blocks about equally long (Che's approximation). No server reports its lifetime. It is
// learned from responses, which state how much of a prompt was cached.
type lifetime time.Duration

// lifetimeStep is the maximum factor of the change after one prompt.
const lifetimeStep = 1.1

// keeps reports whether a block of that age is still cached.
func (l lifetime) keeps(age time.Duration) bool { return l == 0 || age <= time.Duration(l) }

// learn updates the lifetime after a prompt for which more bytes than expected were cached. A difference of less than a
// block is ignored, because servers have other block sizes. kept is the age of the last block that was expected to be
// cached, 0 if unknown. expired is set if the block after it was sent to the server, too, but longer ago than the
// lifetime.
func (l *lifetime) learn(more, block float64, kept time.Duration, expired bool) {
	switch {
	case more <= -block && kept > 0 && *l == 0:
		*l = lifetime(kept)
	case more <= -block && kept > 0:
		*l = max(lifetime(float64(*l)/lifetimeStep), lifetime(time.Second))
	case more >= block && expired:
		*l = lifetime(float64(*l) * lifetimeStep)
	}
}
