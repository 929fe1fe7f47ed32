package discovery

import (
	"context"
	"fmt"
	"time"

	"example.org/pilotfish/internal/pool"
)

// source is where upstreams come from.
type source interface {
	// ask returns every upstream that the source knows, with canonical
	// addresses. It may block until the list changes, but no longer than atMost
	// if that is positive, and it returns early when ctx is done. An error means
	// that there is no reply, which is not the same as an empty one. It is a clause
	// that names the source.
	ask(ctx context.Context, atMost time.Duration) (reply, error)
}

// origin is a source, its name, and how often it may be asked.
type origin struct {
	source source
	name   string
	pace   pace
}

// reply is what a source says.
type reply struct {
	upstreams []pool.Upstream
	none      string // why there are no upstreams, as a clause, where the source knows
	flaw      error  // why something was left out of upstreams: the same reason in any order
	flaws     int    // how many there are
}

// add takes one more upstream, or the flaw in its address.
func (r *reply) add(host string, port int, weight float64) {
	address, err := join(host, port)
	if err != nil {
		r.leaveOut(err)
		return
	}
	r.upstreams = append(r.upstreams, pool.Upstream{Address: address, Weight: weight})
}

// leaveOut notes a flaw; nil is none.
func (r *reply) leaveOut(err error) {
	if err == nil {
		return
	}
	if r.flaws++; r.flaws == 1 || err.Error() < r.flaw.Error() {
		r.flaw = err
	}
}

// flawed says what was left out, as a clause; "" is nothing.
func (r *reply) flawed() string {
	switch {
	case r.flaws == 0:
		return ""
	case r.flaws == 1:
		return fmt.Sprintf("left out: %v", r.flaw)
	}
	return fmt.Sprintf("left out: %v, and %d more", r.flaw, r.flaws-1)
}

// static is a fixed list.
type static struct{ list []pool.Upstream }

func (s *Settings) openStatic(*Config) (origin, error) {
	var list []pool.Upstream
	for _, a := range s.Static {
		address, err := canonical(a)
		if err != nil {
			return origin{}, err
		}
		list = append(list, pool.Upstream{Address: address})
	}
	return origin{source: static{list}, name: "static list", pace: pace{gap: 24 * time.Hour}}, nil
}

func (s static) ask(context.Context, time.Duration) (reply, error) {
	return reply{upstreams: s.list}, nil
}
