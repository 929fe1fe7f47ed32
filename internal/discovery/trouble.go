package discovery

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// trouble says in words what is wrong with the last reply, and what that means: "rules.test.
// does not exist (NXDOMAIN); 3 upstreams kept for 30 s". It is the same as long as the same
// is wrong, so that it can be logged once.
func (d *Discovery) trouble(result ruling, r reply, err error) string {
	var all []string
	add := func(clause string) {
		if clause != "" {
			all = append(all, clause)
		}
	}
	inForce := len(d.guard.inForce())
	nothing := cmp.Or(r.none, d.origin.name+" names no upstream")
	if len(r.upstreams) > 0 {
		nothing = d.origin.name + " names no upstream but this sidecar"
	}
	switch {
	case err != nil:
		add(err.Error())
		add(kept(inForce, 0))
	case result.doubt == emptiness:
		add(nothing)
		add(kept(inForce, d.guard.holdEmpty))
	case result.doubt == drop:
		add(fmt.Sprintf("%s lacks %d of %s", d.origin.name, len(d.guard.gone), upstreams(len(d.guard.good))))
		add(kept(len(d.guard.gone), d.guard.holdDrop))
	case inForce == 0:
		add(nothing)
	}
	add(r.flawed())
	if d.unkept != nil {
		add(d.unkept.Error())
	}
	return localPort.ReplaceAllString(strings.Join(all, "; "), "")
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
