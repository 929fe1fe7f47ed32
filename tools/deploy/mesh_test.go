package deploy

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3" // registers the types named in the files
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// envoyOf decodes a configuration of Envoy as its published types. An unknown field or an
// invalid value is an error.
func envoyOf(t *testing.T, text []byte) *bootstrap.Bootstrap {
	t.Helper()
	json, err := yaml.YAMLToJSONStrict(text)
	require.NoError(t, err)
	b := new(bootstrap.Bootstrap)
	require.NoError(t, protojson.Unmarshal(json, b))
	require.NoError(t, b.ValidateAll())
	return b
}

// The configuration in the config map is the one that make test-mesh tests, except for
// discovery and the kubelet's port.
func TestEnvoyConfigurationIsTheTestedOne(t *testing.T) {
	want := envoyOf(t, read(t, "envoy", "envoy.yaml"))
	got := envoyOf(t, []byte(manifest[*core.ConfigMap](t, "mesh/sidecar/envoy/envoy.yaml").Data["envoy.yaml"]))
	find := func(b *bootstrap.Bootstrap) *cluster.Cluster {
		i := slices.IndexFunc(b.StaticResources.Clusters, func(c *cluster.Cluster) bool { return c.Name == "upstreams" })
		require.GreaterOrEqual(t, i, 0)
		return b.StaticResources.Clusters[i]
	}
	from, to := find(want), find(got)
	assert.Equal(t, "envoy.clusters.dns", to.GetClusterType().GetName())
	endpoints := to.LoadAssignment.Endpoints[0].LbEndpoints
	require.Len(t, endpoints, 1)
	address := endpoints[0].GetEndpoint().GetAddress().GetSocketAddress()
	discovery := meshSettings(t, "mesh/sidecar/pilotfish.yaml").Discovery.DNS
	assert.Equal(t, discovery, fmt.Sprintf("%s:%d", address.Address, address.GetPortValue()), "Envoy and pilotfish must know the same upstreams")

	from.ClusterDiscoveryType, from.LoadAssignment = to.ClusterDiscoveryType, to.LoadAssignment
	listeners := got.StaticResources.Listeners
	ready := slices.IndexFunc(listeners, func(l *listener.Listener) bool { return l.Name == "ready" })
	require.GreaterOrEqual(t, ready, 0)
	assert.EqualValues(t, 9902, listeners[ready].Address.GetSocketAddress().GetPortValue())
	got.StaticResources.Listeners = slices.Delete(listeners, ready, ready+1)
	assert.True(t, proto.Equal(want, got), "want %v\ngot %v", want, got)
}

// meshSettings returns the settings of a config map, which pilotfish must accept.
func meshSettings(t *testing.T, file string) (s struct {
	settings
	Mesh struct{ Listen string }
}) {
	t.Helper()
	text := []byte(manifest[*core.ConfigMap](t, file).Data["pilotfish.yaml"])
	s.settings = configuration(t, text)
	require.NoError(t, yaml.Unmarshal(text, &s))
	return s
}

// Both sidecars are native, start before the submitter, and end after it. Envoy starts second,
// because it needs pilotfish.
func TestEnvoyAndPilotfishAreNativeSidecars(t *testing.T) {
	all := objects(t, "mesh", "sidecar")
	pod := of[*apps.Deployment](t, all, "submitter").Spec.Template
	plain, c := sidecar(t)
	require.Len(t, pod.Spec.InitContainers, 2)
	for i, name := range []string{"pilotfish", "envoy"} {
		c := pod.Spec.InitContainers[i]
		assert.Equal(t, name, c.Name)
		require.NotNil(t, c.RestartPolicy)
		assert.Equal(t, core.ContainerRestartPolicyAlways, *c.RestartPolicy)
		require.NotNil(t, c.StartupProbe)
		require.NotNil(t, c.ReadinessProbe)
		confined(t, c)
	}
	confined(t, pod.Spec.Containers[0])
	assert.Equal(t, c, pod.Spec.InitContainers[0], "the same as without Envoy")
	assert.Equal(t, plain.Labels, pod.Labels)
	text := of[*core.ConfigMap](t, all, "pilotfish").Data["pilotfish.yaml"]
	assert.Equal(t, manifest[*core.ConfigMap](t, "mesh/sidecar/pilotfish.yaml").Data["pilotfish.yaml"], text)

	s := meshSettings(t, "mesh/sidecar/pilotfish.yaml")
	assert.Equal(t, "127.0.0.1:9002", s.Mesh.Listen)
	assert.Greater(t, float64(*pod.Spec.TerminationGracePeriodSeconds), s.grace(t).Seconds())
	assert.Equal(t, of[*core.ConfigMap](t, all, "envoy-pilotfish").Name, pod.Spec.Volumes[len(pod.Spec.Volumes)-1].ConfigMap.Name)
}

// The gateway's route leads to the pool and the pool to the picker, and both select the same
// model servers.
func TestInferencePoolUsesPilotfish(t *testing.T) {
	const folder = "mesh/gateway/"
	route := manifest[*gateway.HTTPRoute](t, folder+"httproute.yaml")
	pool := manifest[*inference.InferencePool](t, folder+"inferencepool.yaml")
	service := manifest[*core.Service](t, folder+"service.yaml")
	models := manifest[*core.Service](t, folder+"modelservice.yaml")
	picker := manifest[*apps.Deployment](t, folder+"picker.yaml")
	policy := manifest[*networking.NetworkPolicy](t, folder+"networkpolicy.yaml")
	s := meshSettings(t, folder+"pilotfish.yaml")

	backend := route.Spec.Rules[0].BackendRefs[0].BackendObjectReference
	assert.EqualValues(t, inference.GroupName, *backend.Group)
	assert.EqualValues(t, "InferencePool", *backend.Kind)
	assert.EqualValues(t, pool.Name, backend.Name)

	ref := pool.Spec.EndpointPickerRef
	assert.EqualValues(t, service.Name, ref.Name)
	assert.EqualValues(t, service.Spec.Ports[0].Port, ref.Port.Number)
	assert.Contains(t, []inference.EndpointPickerFailureMode{inference.EndpointPickerFailOpen, inference.EndpointPickerFailClose}, ref.FailureMode)

	pod := picker.Spec.Template
	assert.Subset(t, pod.Labels, service.Spec.Selector)
	assert.Subset(t, pod.Labels, policy.Spec.PodSelector.MatchLabels)
	c := pod.Spec.Containers[0]
	confined(t, c)
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	assert.Equal(t, intstr.FromString("picker"), service.Spec.Ports[0].TargetPort)
	assert.Equal(t, "0.0.0.0:9002", s.Mesh.Listen)
	assert.Equal(t, map[string]int32{"picker": 9002, "admin": 9180}, ports)
	for path, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		require.NotNil(t, probe.HTTPGet, "gRPC probes speak no TLS")
		assert.Equal(t, core.HTTPGetAction{Path: path, Port: intstr.FromString("admin")}, *probe.HTTPGet)
	}
	assert.Equal(t, manifest[*core.ConfigMap](t, folder+"pilotfish.yaml").Name, pod.Spec.Volumes[0].ConfigMap.Name)
	assert.Greater(t, float64(*pod.Spec.TerminationGracePeriodSeconds), s.grace(t).Seconds())

	assert.Equal(t, core.ClusterIPNone, models.Spec.ClusterIP)
	require.Len(t, pool.Spec.TargetPorts, 1)
	assert.Equal(t, models.Name, s.Discovery.Kubernetes.Service)
	assert.EqualValues(t, pool.Spec.TargetPorts[0].Number, models.Spec.Ports[0].Port)
	all := objects(t, "mesh", "gateway")
	binding := of[*rbac.RoleBinding](t, all, "pilotfish-picker")
	assert.Equal(t, of[*rbac.Role](t, all, binding.RoleRef.Name).Rules, manifest[*rbac.Role](t, "sidecar/access.yaml").Rules)
	assert.Equal(t, []rbac.Subject{{Kind: "ServiceAccount", Name: pod.Spec.ServiceAccountName, Namespace: "models"}}, binding.Subjects)
	for key, value := range pool.Spec.Selector.MatchLabels {
		assert.EqualValues(t, models.Spec.Selector[string(key)], value, "both select the same pods")
	}
	for _, rule := range policy.Spec.Ingress {
		assert.NotEmpty(t, rule.From, "everyone is let in")
	}
}

// The picker reads the same fields of requests and the same metrics of servers as the tested
// recipe.
func TestPickerConfigurationMatchesTheRecipe(t *testing.T) {
	var recipe, picker map[string]any
	require.NoError(t, yaml.UnmarshalStrict(read(t, "recipes", "vllm.yaml"), &recipe))
	require.NoError(t, yaml.UnmarshalStrict([]byte(manifest[*core.ConfigMap](t, "mesh/gateway/pilotfish.yaml").Data["pilotfish.yaml"]), &picker))
	delete(picker["job"].(map[string]any), "budget")
	for _, key := range []string{"job", "reports"} {
		assert.Equal(t, recipe[key], picker[key], key)
	}
}

// manifestFiles returns all manifests below deploy/kubernetes.
func manifestFiles(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.yaml", "*/*.yaml", "*/*/*.yaml", "*/*/*/*.yaml"} {
		more, err := filepath.Glob(filepath.Join(root, "deploy", "kubernetes", pattern))
		require.NoError(t, err)
		files = append(files, more...)
	}
	files = slices.DeleteFunc(files, func(path string) bool { return filepath.Base(path) == "kustomization.yaml" }) // not a manifest
	require.NotEmpty(t, files)
	return files
}
