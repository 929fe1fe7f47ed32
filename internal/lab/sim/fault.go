package sim

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/settings"
)

// FaultKind is what is wrong with an upstream.
type FaultKind string

const (
	// hung: it accepts connections and answers nothing. What runs there stands
	// still, and it does not report.
	hung FaultKind = "hung"
	// refusing: it refuses connections and does not report. What runs there goes on.
	refusing FaultKind = "refusing"
	// slow: joblets that begin last Factor times as long.
	slow FaultKind = "slow"
	// failing: it answers each job with an error at once, and looks idle.
	failing FaultKind = "failing"
	// empty: it answers each job with nothing at once, and looks idle.
	empty FaultKind = "empty"

	// silent: it does not report.
	silent FaultKind = "silent"
	// loadless: it reports what is cached there, but no load.
	loadless FaultKind = "loadless"
	// listless: it reports its load, but not what is cached there.
	listless FaultKind = "listless"
	// coreless: neither its report nor discovery tells its cores.
	coreless FaultKind = "coreless"

	// manyCores: it reports Factor cores.
	manyCores FaultKind = "many-cores"
	// idle: it reports that it has nothing to do.
	idle FaultKind = "idle"
	// greedy: it reports that every project is cached there.
	greedy FaultKind = "greedy"
	// nan: what it reports is not a number, so that there is no report.
	nan FaultKind = "nan"
	// resets: its counters begin again with each report.
	resets FaultKind = "resets"
)

// faultKinds lists every kind.
func faultKinds() (names []string) {
	for _, k := range []FaultKind{
		hung, refusing, slow, failing, empty, silent, loadless, listless, coreless, manyCores, idle, greedy, nan, resets,
	} {
		names = append(names, string(k))
	}
	return names
}

// Fault is what some upstreams suffer for a time.
type Fault struct {
	Kind FaultKind `yaml:"kind"`
	// Upstreams is how many have it, First the number of the first of them.
	Upstreams int `yaml:"upstreams"`
	First     int `yaml:"first"`
	// At is when it begins, For how long it lasts; 0 is to the end.
	At  time.Duration `yaml:"at"`
	For time.Duration `yaml:"for"`
	// Every makes it come and go: it is there in the first half of each Every.
	// With 0 it stays.
	Every time.Duration `yaml:"every"`
	// Factor is how many times as long joblets last when slow, and the number of
	// cores when many-cores.
	Factor float64 `yaml:"factor"`
}

// SetDefaults fills in what a scenario leaves open.
func (v *Fault) SetDefaults() { *v = Fault{Upstreams: 1, Factor: 10} }

func (v *Fault) check(f *settings.Faults, upstreams int) {
	if v == nil {
		f.Add("", "nothing is said of this fault")
		return
	}
	f.OneOf("kind", string(v.Kind), faultKinds())
	checkSome(f, v.First, v.Upstreams, upstreams)
	f.NotNegative("at", v.At)
	f.NotNegative("for", v.For)
	f.NotNegative("every", v.Every)
	f.Between("factor", v.Factor, 1, 1e9)
}

// checkSome refuses upstreams that are not in the fleet.
func checkSome(f *settings.Faults, first, upstreams, fleet int) {
	f.Within("first", first, 0, fleet-1)
	f.Within("upstreams", upstreams, 1, max(1, fleet-first))
}

// String tells people what goes wrong.
func (v *Fault) String() string {
	text := fmt.Sprintf("%d %s", v.Upstreams, v.Kind)
	if v.Kind == slow || v.Kind == manyCores {
		text += fmt.Sprintf(" (%v)", v.Factor)
	}
	if v.Every > 0 {
		text += fmt.Sprintf(" every %v", v.Every)
	}
	if v.At > 0 {
		text += fmt.Sprintf(" from %v", v.At)
	}
	if v.For > 0 {
		text += fmt.Sprintf(" for %v", v.For)
	}
	return text
}

// end is when the fault is over for good.
func (v *Fault) end() time.Duration {
	if v.For == 0 {
		return never
	}
	return v.At + v.For
}

// active says whether the fault is there at an instant.
func (v *Fault) active(now time.Duration) bool {
	if now < v.At || now >= v.end() {
		return false
	}
	return v.Every == 0 || (now-v.At)%v.Every < v.Every/2
}

// until is when a fault that is active is over, for now or for good.
func (v *Fault) until(now time.Duration) time.Duration {
	if v.Every == 0 {
		return v.end()
	}
	begun := now - (now-v.At)%v.Every
	return min(begun+v.Every/2, v.end())
}

// again is when a fault that comes and goes comes next; never if it does not.
func (v *Fault) again(now time.Duration) time.Duration {
	if v.Every == 0 {
		return never
	}
	next := now - (now-v.At)%v.Every + v.Every
	if next >= v.end() {
		return never
	}
	return next
}

// spent is for how long the fault was active before an instant.
func (v *Fault) spent(now time.Duration) time.Duration {
	if now = min(now, v.end()); now <= v.At {
		return 0
	}
	past := now - v.At
	if v.Every == 0 {
		return past
	}
	return past/v.Every*(v.Every/2) + min(past%v.Every, v.Every/2)
}
