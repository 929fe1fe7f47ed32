package discovery

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

// trouble returns Status.Trouble: "rules.test. does not exist (NXDOMAIN); 3 upstreams kept
// for 30 s". The text stays the same while the cause does, so that it is logged once.
func (d *Discovery) trouble(result verdict, r reply, err error) string {
	var all []string
	current := len(d.guard.current())
	nothing := cmp.Or(r.emptyReason, d.source.name+" names no upstream")
	if len(r.upstreams) > 0 {
		nothing = d.source.name + " names no upstream but this sidecar"
	}
	switch {
	case err != nil:
		all = append(all, err.Error(), d.keptText(current, 0))
	case result.doubt == emptiness:
		all = append(all, nothing, d.keptText(current, result.hold))
	case result.doubt == drop:
		lost := len(d.guard.gone)
		all = append(all, fmt.Sprintf("%s lacks %d of %s", d.source.name, lost, upstreams(len(d.guard.good))), d.keptText(lost, result.hold))
	case current == 0:
		all = append(all, nothing)
	}
	switch {
	case r.skipped == 1:
		all = append(all, fmt.Sprintf("left out: %v", r.skipReason))
	case r.skipped > 1:
		all = append(all, fmt.Sprintf("left out: %v, and %d more", r.skipReason, r.skipped-1))
	}
	if d.snapshot != nil {
		if err := d.snapshot.problem(); err != nil {
			all = append(all, err.Error())
		}
	}
	for i, text := range all {
		all[i] = settings.Cut(localPort.ReplaceAllString(text, ""), settings.MaxText/2) // leaves room for a last text, such as "3 upstreams kept"
	}
	return settings.Cut(strings.Join(all, "; "), settings.MaxText)
}

// localPort matches the local address in an error of package net, which differs each time.
var localPort = regexp.MustCompile(`[^ ]+:\d+->`)

// keptText returns the consequence of a failed query or of a reply in doubt: n upstreams are kept, for at least hold if that is
// not 0. If n is 0, no upstream is known.
func (d *Discovery) keptText(n int, hold time.Duration) string {
	switch accepted := d.Status().AcceptedAt; {
	case n == 0 && !accepted.IsZero():
		return "no upstream is known: the last accepted list, of " + settings.Minute(accepted) + ", had none"
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
