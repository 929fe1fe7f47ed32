package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

const (
	kubernetesWait = 5 * time.Minute // maximum duration of a watch
	// kubernetesTimeout is the timeout of a request, in addition to the duration of a watch.
	kubernetesTimeout = 10 * time.Second
	// listAgain is the time after which the slices are listed again. If a cluster is restored from a backup, its resource
	// versions go back to an older one: a watch that continues at a newer version would report nothing.
	listAgain = 10 * time.Minute
	// maxEndpoints is the maximum number of slices and endpoints together; not all endpoints are upstreams.
	maxEndpoints = 4 * maxUpstreams
	// settleTime is how long a watch is read after a change, because changes often occur in groups.
	settleTime = 100 * time.Millisecond
)

// Kubernetes is a service whose EndpointSlices name the upstreams. Each serving pod is an
// upstream; a terminating one is draining. Of a pod with two addresses, the IPv4 address
// is used.
type Kubernetes struct {
	// Service is the name of the service.
	Service string `yaml:"service"`
	// Namespace is the namespace of the service. Empty means the pod's own, or that of the kubeconfig.
	Namespace string `yaml:"namespace"`
	// Port is the name of the service's port. Empty means its only TCP port.
	Port string `yaml:"port"`
	// Kubeconfig is the path of a kubeconfig file. Empty means the service account of the pod
	// in which this process runs.
	Kubeconfig string `yaml:"kubeconfig"`
}

func (s *Kubernetes) check(f *settings.Faults) {
	for _, name := range []struct{ key, text string }{{"service", s.Service}, {"namespace", s.Namespace}, {"port", s.Port}} {
		switch {
		case name.text == "" && name.key == "service":
			f.Add("service", "a service is required")
		case name.text != "" && validation.IsDNS1123Label(name.text) != nil:
			f.Add(name.key, "%s is not a name of Kubernetes: lower case letters, digits and hyphens, at most 63", settings.Quote(name.text))
		}
	}
	if s.Kubeconfig != "" {
		if _, err := s.connect(); err != nil {
			f.Add("kubeconfig", "%v", err)
		}
	}
}

// kubernetes follows a service's EndpointSlices: it lists them, and then watches for changes. Each watch continues at the
// resource version of the last one.
type kubernetes struct {
	cfg     Kubernetes
	client  dynamic.ResourceInterface // nil until the first query: a configuration can be checked outside of a cluster
	slices  map[string]*endpointSlice // by name
	version string                    // resource version of slices; "" means that they must be listed
	listed  time.Time                 // when they were last listed
}

func (s *Kubernetes) open(*Config) (source, error) {
	klog.SetSlogLogger(slog.Default()) // else client-go writes lines that are not JSON
	name := "kubernetes service " + cmp.Or(s.Namespace, "(own namespace)") + "/" + s.Service
	return source{(&kubernetes{cfg: *s}).query, name, shortest}, nil
}

func (k *kubernetes) query(ctx context.Context, atMost time.Duration) (reply, error) {
	ctx = klog.NewContext(ctx, klog.Logger{}) // else client-go logs its own messages
	err := k.update(ctx, atMost)
	n := len(k.slices)
	for _, s := range k.slices {
		n += len(s.Endpoints)
	}
	if err == nil && n > maxEndpoints {
		err = fmt.Errorf("its slices have %d endpoints, and at most %d are allowed", n, maxEndpoints)
	}
	if err != nil {
		k.version, k.slices = "", nil // list again: another API server may not know this resource version
		return reply{}, fmt.Errorf("the Kubernetes API gives no reply: %w", err)
	}
	return k.read(), nil
}

// update updates the slices. Most calls wait for a change; the first one, and one after listAgain, list them.
func (k *kubernetes) update(ctx context.Context, atMost time.Duration) (err error) {
	if k.client == nil {
		if k.client, err = k.cfg.connect(); err != nil {
			return err
		}
	}
	if k.version == "" || time.Since(k.listed) >= listAgain {
		return k.list(ctx)
	}
	wait := kubernetesWait
	if atMost > 0 {
		wait = min(wait, max(atMost, time.Second))
	}
	err = k.follow(ctx, wait)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return k.list(ctx) // the server no longer has the changes since version: not a failure
	}
	return err
}

// follow watches for changes since the version, until there is a change or the watch ends.
func (k *kubernetes) follow(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, wait+kubernetesTimeout, errTimeout)
	defer cancel()
	w, err := k.client.Watch(ctx, metav1.ListOptions{
		LabelSelector: k.cfg.selector(), AllowWatchBookmarks: true, ResourceVersion: k.version, TimeoutSeconds: new(int64(wait.Seconds())),
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	var settled <-chan time.Time
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return context.Cause(ctx) // nil: the wait is over
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
			return context.Cause(ctx)
		}
	}
}

// read converts the slices to upstreams. A pod of a dual-stack service is in slices of both
// address families, and becomes one upstream.
func (k *kubernetes) read() (r reply) {
	known := map[string]bool{} // pods
	for _, s := range slices.SortedFunc(maps.Values(k.slices), func(a, b *endpointSlice) int {
		return cmp.Or(cmp.Compare(a.AddressType, b.AddressType), cmp.Compare(a.Metadata.Name, b.Metadata.Name)) // IPv4 sorts before IPv6
	}) {
		for _, e := range s.Endpoints {
			u, err := k.endpoint(s, e)
			if err != nil {
				r.skip(fmt.Errorf("slice %s: %w", settings.Quote(s.Metadata.Name), err))
			}
			pod := cmp.Or(e.TargetRef.UID, u.Address) // an endpoint without a pod is identified by its address
			if u.Address != "" && !known[pod] {
				known[pod] = true
				r.upstreams = append(r.upstreams, u)
			}
		}
	}
	return r
}

// endpoint converts an endpoint to an upstream. The upstream has no address while the endpoint is not serving.
func (k *kubernetes) endpoint(s *endpointSlice, e sliceEndpoint) (u pool.Upstream, err error) {
	c := e.Conditions
	ready := c.Ready == nil || *c.Ready // as the API defines: unknown is ready
	serving := c.Serving != nil && *c.Serving
	if !ready && !serving {
		return u, nil
	}
	if len(e.Addresses) == 0 {
		return u, errors.New("an endpoint has no address")
	}
	port, err := k.port(s)
	if err != nil {
		return u, err
	}
	u.Draining = c.Terminating != nil && *c.Terminating
	u.Address, err = settings.JoinAddress(e.Addresses[0], port) // the API requires clients to use the first only
	return u, err
}

// port returns the port of a slice's endpoints.
func (k *kubernetes) port(s *endpointSlice) (int, error) {
	var names []string
	only := 0
	for _, p := range s.Ports {
		if p.Port == nil || cmp.Or(p.Protocol, "TCP") != "TCP" {
			continue
		}
		if k.cfg.Port == p.Name && p.Name != "" {
			return int(*p.Port), nil
		}
		names, only = append(names, settings.Quote(p.Name)), int(*p.Port)
	}
	switch {
	case k.cfg.Port != "":
		return 0, fmt.Errorf("the service has no TCP port %s, but %v", settings.Quote(k.cfg.Port), names)
	case len(names) != 1:
		return 0, fmt.Errorf("the service has the TCP ports %v: name one with port", names)
	}
	return only, nil
}
