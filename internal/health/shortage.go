package health

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// shortages are the errors of a process or machine that has used up its file descriptors, memory or ephemeral ports. EAGAIN of a
// Unix socket is none of them: the accept queue of the upstream is full.
var shortages = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}

// Lookups tells a resolver that fails from a name that cannot be resolved. The resolver fails if the look-ups of two names
// have failed within lookupMemory and none has succeeded in between. If look-ups of only one name fail, its upstream is at
// fault: each job that is sent there waits for the resolver, so its breaker must open.
type Lookups struct {
	last  failedLookup
	other failedLookup // the last one of another name
}

// lookupMemory is how long a failed look-up of another name shows that the resolver fails.
const lookupMemory = time.Minute

type failedLookup struct {
	name string // "" means none
	at   time.Time
}

// Resolved records that a name was resolved.
func (l *Lookups) Resolved() { *l = Lookups{} }

// IsShortage records the error of a dial or poll, and reports whether it is a fault of this process, its machine or its
// resolver. Then it is no evidence against an upstream. The error of a name that does not exist is.
func (l *Lookups) IsShortage(now time.Time, err error) bool {
	lookup, failed := errors.AsType[*net.DNSError](err)
	switch {
	case slices.ContainsFunc(shortages, func(one error) bool {
		return errors.Is(err, one) || failed && strings.HasSuffix(lookup.Err, one.Error()) // net.DNSError does not wrap it
	}):
		return true
	case !failed, lookup.IsNotFound:
		return false
	}
	if lookup.Name != l.last.name {
		l.other = l.last
	}
	l.last = failedLookup{lookup.Name, now}
	return l.other.name != "" && now.Sub(l.other.at) <= lookupMemory
}
