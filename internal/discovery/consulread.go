package discovery

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"example.org/pilotfish/internal/pool"
)

// maxFlaws bounds how many flaws of one answer are told.
const maxFlaws = 5

// read turns instances into upstreams. An instance without a usable address is
// left out; a wrong value in its meta costs only what that value would tell.
func (c *consul) read(entries []*api.ServiceEntry) answer {
	a := answer{upstreams: make([]pool.Upstream, 0, len(entries))}
	flaws := 0
	for _, e := range entries {
		u, ok, err := readEntry(e, c.lifetime)
		if ok {
			a.upstreams = append(a.upstreams, u)
		}
		if err != nil {
			if flaws++; flaws <= maxFlaws {
				a.flaw = errors.Join(a.flaw, err)
			}
		}
	}
	if flaws > maxFlaws {
		a.flaw = errors.Join(a.flaw, fmt.Errorf("and %d more", flaws-maxFlaws))
	}
	return a
}

// readEntry turns one instance into an upstream. It is not ok without an address.
func readEntry(e *api.ServiceEntry, lifetime time.Duration) (u pool.Upstream, ok bool, err error) {
	if e == nil || e.Service == nil {
		return u, false, errors.New("an instance that is null")
	}
	host := e.Service.Address
	if host == "" && e.Node != nil {
		host = e.Node.Address
	}
	address, err := join(host, e.Service.Port)
	if err != nil {
		return u, false, fmt.Errorf("instance %s: %w", quote(e.Service.ID), err)
	}
	f, err := readMeta(e.Service.Meta)
	if err != nil {
		err = fmt.Errorf("instance %s: meta %w", quote(e.Service.ID), err)
	}
	if w := e.Service.Weights.Passing; w > 0 && w <= maxWeight {
		f.weight = float64(w)
	}
	return f.upstream(address, lifetime), true, err
}

// readMeta reads what an instance tells about itself; other keys are not ours.
func readMeta(meta map[string]string) (f facts, err error) {
	for _, key := range []string{"cores", "started_at", "stops_at", "preemptible", "draining"} {
		if value, ok := meta[key]; ok {
			err = errors.Join(err, f.learn(key, value))
		}
	}
	return f, err
}
