package discovery

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// slicesVersion is the API's group and version of EndpointSlices.
func slicesVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1"}
}

// serviceLabel is the label of a slice with its service's name.
const serviceLabel = "kubernetes.io/service-name"

// endpointSlice is an EndpointSlice as far as discovery reads it. The type of k8s.io/api
// would bring the code of pods, nodes and all other kinds into the program.
type endpointSlice struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        sliceMetadata   `json:"metadata"`
	AddressType     string          `json:"addressType"`
	Endpoints       []sliceEndpoint `json:"endpoints"`
	Ports           []slicePort     `json:"ports"`
}

type sliceMetadata struct {
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
}

// sliceEndpoint is one pod, or what else serves. What is nil is unknown.
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
	Protocol string `json:"protocol"` // empty is TCP
	Port     *int32 `json:"port"`     // nil is every port
}

// endpointSliceList is the reply to a list.
type endpointSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []endpointSlice `json:"items"`
}

// addSlices registers the two kinds.
func addSlices(s *runtime.Scheme) {
	version := slicesVersion()
	s.AddKnownTypeWithName(version.WithKind("EndpointSlice"), new(endpointSlice))
	s.AddKnownTypeWithName(version.WithKind("EndpointSliceList"), new(endpointSliceList))
	metav1.AddToGroupVersion(s, version)
}

// DeepCopyObject implements runtime.Object. Nobody changes what was decoded, so that
// copies share endpoints and ports.
func (s *endpointSlice) DeepCopyObject() runtime.Object {
	c := *s
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *endpointSliceList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	return &c
}
