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
// Unix socket is not one of them: it means that the accept queue of the upstream is full.
var shortages = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}

// Lookups distinguishes a resolver that fails from one name that is not resolved. The resolver fails if the look-ups of two names
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

// Dialed records how a dial to a name ended.
func (l *Lookups) Dialed(now time.Time, err error) {
	switch name, failed := failedName(err); {
	case err == nil:
		*l = Lookups{}
	case failed && name != l.last.name:
		l.last, l.other = failedLookup{name, now}, l.last
	case failed:
		l.last.at = now
	}
}

// IsShortage reports whether the error of a dial or poll is a fault of this process, its machine or its resolver. Then it is
// no evidence against an upstream. The error of a name that does not exist is.
func (l *Lookups) IsShortage(now time.Time, err error) bool {
	if isUsedUp(err) {
		return true
	}
	name, failed := failedName(err)
	other := l.last
	if name == other.name {
		other = l.other
	}
	return failed && other.name != "" && now.Sub(other.at) <= lookupMemory
}

// failedName returns the name whose look-up the resolver did not answer.
func failedName(err error) (string, bool) {
	lookup, failed := errors.AsType[*net.DNSError](err)
	if !failed || lookup.IsNotFound || isUsedUp(err) {
		return "", false
	}
	return lookup.Name, true
}

func isUsedUp(err error) bool {
	lookup, failed := errors.AsType[*net.DNSError](err)
	return slices.ContainsFunc(shortages, func(one error) bool {
		return errors.Is(err, one) || failed && strings.HasSuffix(lookup.Err, one.Error()) // net.DNSError does not wrap it
	})
}
