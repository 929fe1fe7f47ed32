package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/pool"
)

// source is where upstreams come from.
type source interface {
	// ask returns every upstream that the source knows, with canonical
	// addresses. It may block until the list changes, but no longer than atMost
	// if that is positive, and it returns early when ctx is done. An error means
	// that there is no reply, which is not the same as an empty one.
	ask(ctx context.Context, atMost time.Duration) (reply, error)
}

// reply is what a source says.
type reply struct {
	upstreams []pool.Upstream
	// flaw is why something was left out of upstreams; nil if nothing was.
	flaw error
}

// add takes one more upstream, or the flaw in its address.
func (r *reply) add(host string, port int, weight float64) {
	address, err := join(host, port)
	if err != nil {
		r.flaw = errors.Join(r.flaw, err)
		return
	}
	r.upstreams = append(r.upstreams, pool.Upstream{Address: address, Weight: weight})
}

// maxFlaws bounds how many flaws of one reply are told.
const maxFlaws = 5

// flaws gathers those of one reply.
type flaws struct {
	told error // the first maxFlaws
	n    int
}

// add takes one more; nil is none.
func (f *flaws) add(err error) {
	if err == nil {
		return
	}
	if f.n++; f.n <= maxFlaws {
		f.told = errors.Join(f.told, err)
	}
}

// err is the first few flaws, and how many more there are.
func (f *flaws) err() error {
	if f.n <= maxFlaws {
		return f.told
	}
	return errors.Join(f.told, fmt.Errorf("and %d more", f.n-maxFlaws))
}

// origin is a source, its name, and how often it may be asked.
type origin struct {
	source source
	name   string
	pace   pace
}

// open returns the one source that is set.
func (c *Config) open() (origin, error) {
	switch {
	case c.File != nil:
		return newFile(*c.File), nil
	case c.DNS != nil:
		return newDNS(*c.DNS, c.Resolver), nil
	case c.Consul != nil:
		return newConsul(*c.Consul, c.Transport)
	case c.Kubernetes != nil:
		return newKubernetes(*c.Kubernetes)
	}
	return newStatic(c.Static)
}

// static is a fixed list. It replies once.
type static struct {
	list []pool.Upstream
	sent bool
}

func newStatic(addresses []string) (origin, error) {
	s := &static{}
	for _, a := range addresses {
		address, err := canonical(a)
		if err != nil {
			return origin{}, err
		}
		s.list = append(s.list, pool.Upstream{Address: address})
	}
	return origin{source: s, name: "static list", pace: pace{gap: shortest, retryMax: longestRetry}}, nil
}

func (s *static) ask(ctx context.Context, _ time.Duration) (reply, error) {
	if s.sent {
		<-ctx.Done()
		return reply{}, ctx.Err()
	}
	s.sent = true
	return reply{upstreams: s.list}, nil
}
