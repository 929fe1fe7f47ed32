package proxy

import (
	"fmt"
	"net/http"
	"strconv"
)

// explain adds headers about the decision.
func (r *Record) explain(h http.Header) {
	if len(r.Attempts) == 0 {
		return
	}
	a := r.attempt()
	h.Set("Pilotfish-Upstream", a.Upstream)
	h.Set("Pilotfish-Cache", a.Cache.String())
	h.Set("Pilotfish-Attempts", strconv.Itoa(len(r.Attempts)))
	h.Set("Pilotfish-Why", a.Why())
}

// Why says in a few words what spoke for the upstream; costs are in seconds.
func (a *Attempt) Why() string {
	why := fmt.Sprintf("cost=%.3f wait=%.3f fetch=%.3f placement=%.3f stop=%.3f",
		a.Cost.Total, a.Cost.Wait, a.Cost.Fetch, a.Cost.Placement, a.Cost.Stop)
	if a.Panic {
		why += " panic"
	}
	return why
}
