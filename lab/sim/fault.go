package sim

import (
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
	// listless: it reports its load, but not what is cached there.
	listless FaultKind = "listless"
)

// faultKinds lists every kind.
func faultKinds() []string {
	return []string{string(hung), string(refusing), string(slow), string(failing), string(listless)}
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
	// Factor is how many times as long joblets last when slow.
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
	f.Between("factor", v.Factor, 1, 1e9)
}

// checkSome refuses upstreams that are not in the fleet.
func checkSome(f *settings.Faults, first, upstreams, fleet int) {
	f.Within("first", first, 0, fleet-1)
	f.Within("upstreams", upstreams, 1, max(1, fleet-first))
}

// end is when the fault is over for good.
func (v *Fault) end() time.Duration {
	if v.For == 0 {
		return never
	}
	return v.At + v.For
}

// active says whether the fault is there at an instant.
func (v *Fault) active(now time.Duration) bool { return now >= v.At && now < v.end() }

// spent is for how long the fault was active before an instant.
func (v *Fault) spent(now time.Duration) time.Duration { return max(0, min(now, v.end())-v.At) }
