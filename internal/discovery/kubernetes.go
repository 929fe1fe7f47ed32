package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"example.org/pilotfish/internal/pool"
)

const (
	// kubernetesTimeout is how long a reply may take beyond the watch's own wait.
	kubernetesTimeout = 10 * time.Second
	// settleTime is how long a watch is read on after a change: others follow it closely.
	settleTime = 100 * time.Millisecond
)

// slicesAPI lists and watches the EndpointSlices of one service.
type slicesAPI interface {
	list(ctx context.Context) (*endpointSliceList, error)
	// watch tells what has changed since a version, for as long as wait.
	watch(ctx context.Context, version string, wait time.Duration) (watch.Interface, error)
}

// kubernetes follows a service's EndpointSlices: a list first, and then one watch
// after the other from where the last one ended.
type kubernetes struct {
	cfg     Kubernetes
	api     slicesAPI
	slices  map[string]*endpointSlice // by name
	version string                    // of the slices; "" asks for a list
}

func newKubernetes(cfg Kubernetes) (origin, error) {
	api, err := newSlicesClient(cfg)
	if err != nil {
		return origin{}, fmt.Errorf("kubernetes: %w", err)
	}
	return origin{
		source: &kubernetes{cfg: cfg, api: api},
		name:   "kubernetes service " + cmp.Or(cfg.Namespace, "(own namespace)") + "/" + cfg.Service,
		pace:   pace{gap: shortest, saved: 1, retryMax: longestRetry},
	}, nil
}

func (k *kubernetes) ask(ctx context.Context, atMost time.Duration) (reply, error) {
	err := k.update(ctx, atMost)
	if err != nil {
		k.version = "" // the next server may count differently
		return reply{}, fmt.Errorf("ask kubernetes: %w", err)
	}
	return k.read(), nil
}

// update brings the slices up to date. It waits for a change, but not at the first time.
func (k *kubernetes) update(ctx context.Context, atMost time.Duration) error {
	if k.version == "" {
		return k.list(ctx)
	}
	wait := k.cfg.Wait
	if atMost > 0 {
		wait = min(wait, max(atMost, time.Second))
	}
	err := k.follow(ctx, wait)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return k.list(ctx) // what happened meanwhile is forgotten: that is no failure
	}
	return err
}

func (k *kubernetes) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kubernetesTimeout)
	defer cancel()
	list, err := k.api.list(ctx)
	if err != nil {
		return err
	}
	k.slices, k.version = map[string]*endpointSlice{}, list.ResourceVersion
	for i := range list.Items {
		k.slices[list.Items[i].Metadata.Name] = &list.Items[i]
	}
	if k.version == "" {
		return errors.New("the list has no resourceVersion")
	}
	return nil
}

// follow watches until something has changed, or the wait is over.
func (k *kubernetes) follow(ctx context.Context, wait time.Duration) error {
	limit := wait + kubernetesTimeout
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w, err := k.api.watch(ctx, k.version, wait)
	if err != nil {
		return err
	}
	defer w.Stop()
	var settled <-chan time.Time
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open && ctx.Err() != nil {
				return fmt.Errorf("no reply within %s: %w", limit, ctx.Err())
			}
			if !open {
				return nil // the wait is over
			}
			changed, err := k.apply(e)
			if err != nil {
				return err
			}
			if changed && settled == nil {
				settled = time.After(settleTime)
			}
		case <-settled:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("no reply within %s: %w", limit, ctx.Err())
		}
	}
}

// apply takes in one event.
func (k *kubernetes) apply(e watch.Event) (changed bool, err error) {
	if e.Type == watch.Error {
		return false, apierrors.FromObject(e.Object)
	}
	s, ok := e.Object.(*endpointSlice)
	if !ok {
		return false, fmt.Errorf("a watch of EndpointSlices tells of a %T", e.Object)
	}
	k.version = s.Metadata.ResourceVersion
	switch e.Type {
	case watch.Added, watch.Modified:
		k.slices[s.Metadata.Name] = s
	case watch.Deleted:
		delete(k.slices, s.Metadata.Name)
	default: // a bookmark
		return false, nil
	}
	return true, nil
}

// read turns the slices into upstreams. A pod of a dual-stack service is in the slices
// of both families, and is one upstream, reached by the family of the settings.
func (k *kubernetes) read() reply {
	r := reply{upstreams: []pool.Upstream{}}
	var bad flaws
	found := map[string]pool.Upstream{} // by pod
	for _, name := range k.names() {
		s := k.slices[name]
		for i := range s.Endpoints {
			u, ok, err := k.endpoint(s, &s.Endpoints[i])
			if err != nil {
				bad.add(fmt.Errorf("slice %s: %w", quote(name), err))
			}
			pod := podOf(&s.Endpoints[i], u.Address)
			if _, known := found[pod]; ok && !known {
				found[pod] = u
			}
		}
	}
	r.flaw = bad.err()
	for _, pod := range slices.Sorted(maps.Keys(found)) {
		r.upstreams = append(r.upstreams, found[pod])
	}
	return r
}

// names are the names of the slices in order, those of the family of the settings first.
func (k *kubernetes) names() []string {
	return slices.SortedFunc(maps.Keys(k.slices), func(a, b string) int {
		return cmp.Or(
			compareBool(k.slices[a].AddressType != k.cfg.Family, k.slices[b].AddressType != k.cfg.Family),
			cmp.Compare(a, b))
	})
}

// podOf names the pod of an endpoint; without one, its address stands for it.
func podOf(e *sliceEndpoint, address string) string {
	return cmp.Or(e.TargetRef.UID, address)
}

// endpoint turns one endpoint into an upstream. It is not ok while it does not serve.
func (k *kubernetes) endpoint(s *endpointSlice, e *sliceEndpoint) (u pool.Upstream, ok bool, err error) {
	c := e.Conditions
	ready := c.Ready == nil || *c.Ready // as the API has it: unknown is ready
	serving := ready
	if c.Serving != nil {
		serving = serving || *c.Serving
	}
	if !serving {
		return u, false, nil
	}
	if len(e.Addresses) == 0 {
		return u, false, errors.New("an endpoint has no address")
	}
	port, err := k.port(s)
	if err != nil {
		return u, false, err
	}
	address, err := join(e.Addresses[0], port) // the others must not be used
	if err != nil {
		return u, false, err
	}
	return pool.Upstream{Address: address, Draining: c.Terminating != nil && *c.Terminating}, true, nil
}

// port is the port of a slice's endpoints.
func (k *kubernetes) port(s *endpointSlice) (int, error) {
	var names []string
	for _, p := range s.Ports {
		if p.Port == nil || cmp.Or(p.Protocol, "TCP") != "TCP" {
			continue
		}
		if k.cfg.Port == p.Name || k.cfg.Port == "" && len(s.Ports) == 1 {
			return int(*p.Port), nil
		}
		names = append(names, quote(p.Name))
	}
	if k.cfg.Port == "" {
		return 0, fmt.Errorf("the service has the TCP ports %v: name one with port", names)
	}
	return 0, fmt.Errorf("the service has no TCP port %s, but %v", quote(k.cfg.Port), names)
}
