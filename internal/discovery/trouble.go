package discovery

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

// trouble says in words what is wrong with the last reply, and what that means: "rules.test.
// does not exist (NXDOMAIN); 3 upstreams kept for 30 s". It is the same as long as the same
// is wrong, so that it can be logged once.
func (d *Discovery) trouble(result ruling, r reply, err error) string {
	var all []string
	inForce := len(d.guard.inForce())
	nothing := cmp.Or(r.none, d.origin.name+" names no upstream")
	if len(r.upstreams) > 0 {
		nothing = d.origin.name + " names no upstream but this sidecar"
	}
	switch {
	case err != nil:
		all = append(all, err.Error(), kept(inForce, 0))
	case result.doubt == emptiness:
		all = append(all, nothing, kept(inForce, result.hold))
	case result.doubt == drop:
		lost := len(d.guard.gone)
		all = append(all, fmt.Sprintf("%s lacks %d of %s", d.origin.name, lost, upstreams(len(d.guard.good))), kept(lost, result.hold))
	case inForce == 0:
		all = append(all, nothing)
	}
	switch {
	case r.flaws == 1:
		all = append(all, fmt.Sprintf("left out: %v", r.flaw))
	case r.flaws > 1:
		all = append(all, fmt.Sprintf("left out: %v, and %d more", r.flaw, r.flaws-1))
	}
	if d.unkept != nil {
		all = append(all, d.unkept.Error())
	}
	for i, text := range all {
		all[i] = settings.Cut(localPort.ReplaceAllString(text, ""), settings.MaxText/2) // so that what it means fits behind it
	}
	return settings.Cut(strings.Join(all, "; "), settings.MaxText)
}

// localPort is this machine's end of a connection in an error of package net. It is another
// each time.
var localPort = regexp.MustCompile(`[^ ]+:\d+->`)

// kept says how many upstreams are kept, and for how long at least; 0 is until there is a
// reply.
func kept(n int, hold time.Duration) string {
	switch {
	case n == 0:
		return "no upstream is known yet"
	case hold == 0:
		return upstreams(n) + " kept"
	}
	return fmt.Sprintf("%s kept for %g s", upstreams(n), hold.Seconds())
}

func upstreams(n int) string {
	if n == 1 {
		return "1 upstream"
	}
	return fmt.Sprintf("%d upstreams", n)
}
