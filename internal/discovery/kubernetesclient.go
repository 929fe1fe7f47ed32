package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/httpclient"
)

// endpointSlice has the fields of an EndpointSlice that discovery reads. Using the type of
// k8s.io/api would link the code of pods, nodes and all other kinds.
type endpointSlice struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	AddressType string          `json:"addressType"`
	Endpoints   []sliceEndpoint `json:"endpoints"`
	Ports       []slicePort     `json:"ports"`
}

// sliceEndpoint is an endpoint, usually a pod. A nil condition is unknown.
type sliceEndpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready       *bool `json:"ready"`
		Serving     *bool `json:"serving"`
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	TargetRef struct {
		UID string `json:"uid"`
	} `json:"targetRef"`
}

type slicePort struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"` // empty means TCP
	Port     *int32 `json:"port"`     // nil means every port
}

// maxKubeconfig is the maximum size of a kubeconfig file, in bytes.
const maxKubeconfig = 1 << 20

// connect returns a client of the service's EndpointSlices. Without a kubeconfig, clientcmd takes
// the server and the namespace of the pod.
func (s *Kubernetes) connect() (dynamic.ResourceInterface, error) {
	if s.Kubeconfig != "" {
		if _, err := files.Read(s.Kubeconfig, maxKubeconfig); err != nil { // clientcmd reads a file of any size
			return nil, err
		}
	}
	from := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: s.Kubeconfig}, &clientcmd.ConfigOverrides{})
	conf, err := from.ClientConfig()
	if s.Kubeconfig == "" && clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("this process does not run in a pod of a cluster: set kubeconfig to a file")
	}
	if err != nil {
		return nil, err
	}
	namespace, _, err := from.Namespace()
	if err != nil {
		return nil, err
	}
	conf.UserAgent = "pilotfish"
	conf.WarningHandler = rest.NoWarnings{} // else client-go logs warnings itself
	conf.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	httpClient, err := rest.HTTPClientFor(conf)
	if err != nil {
		return nil, err
	}
	httpClient.CheckRedirect = httpclient.CheckRedirect // each request carries the token
	client, err := dynamic.NewForConfigAndClient(conf, httpClient)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	return client.Resource(kind).Namespace(cmp.Or(s.Namespace, namespace, metav1.NamespaceDefault)), nil
}

// selector returns the label selector of the service's slices.
func (s *Kubernetes) selector() string { return "kubernetes.io/service-name=" + s.Service }

// list lists all slices and stores their resource version.
func (k *kubernetes) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kubernetesTimeout)
	defer cancel()
	list, err := k.client.List(ctx, metav1.ListOptions{LabelSelector: k.cfg.selector()})
	if err != nil {
		return err
	}
	k.slices, k.version, k.listed = map[string]*endpointSlice{}, list.GetResourceVersion(), time.Now()
	for i := range list.Items {
		if _, err := k.take(&list.Items[i]); err != nil {
			return err
		}
	}
	if k.version == "" {
		return errors.New("the list has no resourceVersion")
	}
	return nil
}

func (k *kubernetes) take(object runtime.Object) (*endpointSlice, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a %T is among the EndpointSlices", object)
	}
	s := new(endpointSlice)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
		return nil, err
	}
	k.slices[s.Metadata.Name] = s
	return s, nil
}

func (k *kubernetes) apply(e watch.Event) (changed bool, err error) {
	if e.Type == watch.Error {
		return false, apierrors.FromObject(e.Object)
	}
	s, err := k.take(e.Object)
	if err != nil {
		return false, err
	}
	k.version = s.Metadata.ResourceVersion
	if e.Type == watch.Deleted || e.Type == watch.Bookmark {
		delete(k.slices, s.Metadata.Name)
	}
	return e.Type != watch.Bookmark, nil
}
