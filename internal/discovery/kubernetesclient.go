package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"example.org/pilotfish/internal/files"
)

// slicesResource is what is asked for.
const slicesResource = "endpointslices"

// slicesClient asks an API server. It knows one kind of object only: client-go's own
// clients register every kind that there is.
type slicesClient struct {
	cfg    Kubernetes
	scheme *runtime.Scheme

	mu        sync.Mutex
	rest      *rest.RESTClient // nil until it is needed
	namespace string
}

// newSlicesClient refuses a kubeconfig that cannot be used. Whether there is a cluster
// around the process shows when it is asked: a configuration can be checked elsewhere.
func newSlicesClient(cfg Kubernetes) (*slicesClient, error) {
	c := &slicesClient{cfg: cfg, scheme: runtime.NewScheme()}
	addSlices(c.scheme)
	if cfg.Kubeconfig == "" {
		return c, nil
	}
	return c, c.connect()
}

// connect makes the client, unless there is one.
func (c *slicesClient) connect() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest != nil {
		return nil
	}
	conf, namespace, err := c.access()
	if err != nil {
		return err
	}
	version := slicesVersion()
	conf.GroupVersion, conf.APIPath = &version, "/apis"
	conf.NegotiatedSerializer = serializer.NewCodecFactory(c.scheme).WithoutConversion()
	conf.UserAgent = "pilotfish"
	conf.WarningHandler = rest.NoWarnings{} // it would write lines of its own into the log
	conf.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	client, err := rest.RESTClientFor(conf)
	if err != nil {
		return err
	}
	c.rest, c.namespace = client, cmp.Or(c.cfg.Namespace, namespace, metav1.NamespaceDefault)
	return nil
}

// access is how to reach the server, and the namespace that comes with it.
func (c *slicesClient) access() (*rest.Config, string, error) {
	if c.cfg.Kubeconfig == "" {
		conf, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, "", errors.New("this process is in no pod of a cluster: name a file with kubeconfig")
		}
		if err != nil {
			return nil, "", err
		}
		own, err := files.Read(ownNamespace, maxToken)
		return conf, string(own), err
	}
	from := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.cfg.Kubeconfig}, &clientcmd.ConfigOverrides{})
	conf, err := from.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, _, err := from.Namespace()
	return conf, namespace, err
}

const (
	// ownNamespace is where a pod finds the name of its namespace.
	ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	maxToken     = 4 << 10 // bytes of it
)

func (c *slicesClient) list(ctx context.Context) (*endpointSliceList, error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	list := new(endpointSliceList)
	err := c.request(metav1.ListOptions{}).Do(silent(ctx)).Into(list)
	return list, err
}

func (c *slicesClient) watch(ctx context.Context, version string, wait time.Duration) (watch.Interface, error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	seconds := int64(wait.Seconds())
	return c.request(metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true, ResourceVersion: version, TimeoutSeconds: &seconds,
	}).Watch(silent(ctx))
}

// silent keeps client-go from writing lines of its own into the log.
func silent(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// request asks for the slices of the service.
func (c *slicesClient) request(o metav1.ListOptions) *rest.Request {
	o.LabelSelector = serviceLabel + "=" + c.cfg.Service
	return c.rest.Get().Namespace(c.namespace).Resource(slicesResource).
		VersionedParams(&o, runtime.NewParameterCodec(c.scheme))
}
