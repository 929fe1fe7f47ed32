package deploy

import (
	"fmt"
	"os"
	"path"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"example.org/pilotfish/test/program"
)

// sidecar returns the pod of the deployment, and its pilotfish container.
func sidecar(t *testing.T) (pod core.PodTemplateSpec, c core.Container) {
	t.Helper()
	pod = of[*apps.Deployment](t, objects(t), "submitter").Spec.Template
	require.Len(t, pod.Spec.InitContainers, 1)
	return pod, pod.Spec.InitContainers[0]
}

// kubernetesSettings returns the settings of the config map, which the pod must mount.
func kubernetesSettings(t *testing.T) settings {
	t.Helper()
	m := manifest[*core.ConfigMap](t, "sidecar/configmap.yaml")
	pod, c := sidecar(t)
	require.GreaterOrEqual(t, len(c.Args), 3)
	require.Equal(t, "--config", c.Args[1])
	dir, file := path.Split(c.Args[2])
	for _, mount := range c.VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if mount.MountPath == path.Clean(dir) && v.Name == mount.Name && v.ConfigMap != nil {
				require.Equal(t, m.Name, v.ConfigMap.Name)
				require.Contains(t, m.Data, file)
				return configuration(t, []byte(m.Data[file]))
			}
		}
	}
	t.Fatalf("no config map is mounted at %s", dir)
	return settings{}
}

func TestTheSidecarIsNative(t *testing.T) {
	pod, c := sidecar(t)
	require.NotNil(t, c.RestartPolicy)
	assert.Equal(t, core.ContainerRestartPolicyAlways, *c.RestartPolicy, "an init container that must end before the submitter starts")
	grace := kubernetesSettings(t).grace(t)
	require.NotNil(t, pod.Spec.TerminationGracePeriodSeconds)
	assert.Greater(t, time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second, grace, "accepted jobs are killed")
}

func TestProbesReachTheAdminPort(t *testing.T) {
	_, c := sidecar(t)
	assert.Equal(t, ":9180", kubernetesSettings(t).Admin)
	require.Len(t, c.Ports, 1)
	assert.Equal(t, core.ContainerPort{Name: "admin", ContainerPort: 9180, Protocol: core.ProtocolTCP}, c.Ports[0])
	for path, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		require.NotNil(t, probe)
		require.NotNil(t, probe.HTTPGet, "the image has no shell to probe with")
		assert.Equal(t, path, probe.HTTPGet.Path)
		assert.Equal(t, intstr.FromString("admin"), probe.HTTPGet.Port)
	}
	require.NotNil(t, c.StartupProbe)
	assert.Equal(t, "/healthz", c.StartupProbe.HTTPGet.Path, "a submitter that waits for upstreams cannot even start")
}

func TestContainersAreConfined(t *testing.T) {
	pod, c := sidecar(t)
	require.NotNil(t, pod.Spec.SecurityContext)
	assert.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	assert.NotZero(t, *pod.Spec.SecurityContext.RunAsUser)
	assert.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type)
	assert.False(t, *pod.Spec.AutomountServiceAccountToken)
	assert.True(t, *c.SecurityContext.RunAsNonRoot, "whatever pod it is added to")
	assert.NotZero(t, *c.SecurityContext.RunAsUser)
	for _, c := range append(pod.Spec.Containers, c) {
		confined(t, c)
	}
}

func confined(t *testing.T, c core.Container) {
	t.Helper()
	s := c.SecurityContext
	require.NotNil(t, s, c.Name)
	assert.True(t, *s.ReadOnlyRootFilesystem, c.Name)
	assert.False(t, *s.AllowPrivilegeEscalation, c.Name)
	assert.Equal(t, []core.Capability{"ALL"}, s.Capabilities.Drop, c.Name)
	assert.Empty(t, s.Capabilities.Add, c.Name)
	assert.NotZero(t, c.Resources.Limits.Memory().Value(), c.Name)
}

func TestDiscoveryNamesTheHeadlessService(t *testing.T) {
	s := manifest[*core.Service](t, "upstreams/ruleserver.yaml")
	assert.Equal(t, core.ClusterIPNone, s.Spec.ClusterIP)
	assert.False(t, s.Spec.PublishNotReadyAddresses)
	require.Len(t, s.Spec.Ports, 1, "discovery names no port")
	asked := kubernetesSettings(t).Discovery.Kubernetes
	assert.Equal(t, s.Name, asked.Service)
	assert.Empty(t, asked.Namespace, "its own, where the folder is applied")
}

func TestNetworkPolicyAndMonitorSelectThePod(t *testing.T) {
	pod, _ := sidecar(t)
	policy := manifest[*networking.NetworkPolicy](t, "sidecar/networkpolicy.yaml")
	monitor := manifest[*monitoring.PodMonitor](t, "monitor/podmonitor.yaml")
	for name, selector := range map[string]meta.LabelSelector{
		"policy": policy.Spec.PodSelector, "monitor": monitor.Spec.Selector,
	} {
		s, err := meta.LabelSelectorAsSelector(&selector)
		require.NoError(t, err)
		assert.False(t, s.Empty(), "%s selects every pod", name)
		assert.True(t, s.Matches(labels.Set(pod.Labels)), name)
	}
	require.Len(t, policy.Spec.Ingress, 1)
	assert.NotEmpty(t, policy.Spec.Ingress[0].From, "everyone is let in")
	assert.Equal(t, intstr.FromInt32(9180), *policy.Spec.Ingress[0].Ports[0].Port)
	assert.True(t, monitor.Spec.NamespaceSelector.Any, "sidecars are in the namespaces of their submitters, pickers in those of their pools")
	require.Len(t, monitor.Spec.PodMetricsEndpoints, 1)
	assert.Equal(t, "admin", *monitor.Spec.PodMetricsEndpoints[0].Port)
	assert.Equal(t, "job", monitor.Spec.PodMetricsEndpoints[0].RelabelConfigs[0].TargetLabel)
	assert.Equal(t, "pilotfish", *monitor.Spec.PodMetricsEndpoints[0].RelabelConfigs[0].Replacement)
}

// kinds are the published types of the manifests.
var kinds = map[meta.TypeMeta]func() meta.Object{
	{APIVersion: "v1", Kind: "ConfigMap"}:                             func() meta.Object { return new(core.ConfigMap) },
	{APIVersion: "v1", Kind: "Service"}:                               func() meta.Object { return new(core.Service) },
	{APIVersion: "apps/v1", Kind: "Deployment"}:                       func() meta.Object { return new(apps.Deployment) },
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}:       func() meta.Object { return new(networking.NetworkPolicy) },
	{APIVersion: "v1", Kind: "Namespace"}:                             func() meta.Object { return new(core.Namespace) },
	{APIVersion: "v1", Kind: "ServiceAccount"}:                        func() meta.Object { return new(core.ServiceAccount) },
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:            func() meta.Object { return new(policy.PodDisruptionBudget) },
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}:        func() meta.Object { return new(rbac.Role) },
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}: func() meta.Object { return new(rbac.RoleBinding) },
	{APIVersion: "monitoring.coreos.com/v1", Kind: "PodMonitor"}:      func() meta.Object { return new(monitoring.PodMonitor) },
	{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"}:  func() meta.Object { return new(monitoring.PrometheusRule) },

	{APIVersion: "gateway.networking.k8s.io/v1", Kind: "HTTPRoute"}:       func() meta.Object { return new(gateway.HTTPRoute) },
	{APIVersion: "inference.networking.k8s.io/v1", Kind: "InferencePool"}: func() meta.Object { return new(inference.InferencePool) },
}

// decode decodes one manifest as its published type. An unknown kind, an unknown or repeated
// field, and a value of a wrong type are errors.
func decode(text []byte) (meta.Object, error) {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	make, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("no type for %+v", kind)
	}
	o := make()
	return o, yaml.UnmarshalStrict(text, o)
}

// manifest decodes the only manifest of a file.
func manifest[T meta.Object](t *testing.T, name string) T {
	t.Helper()
	o, err := decode(read(t, "kubernetes", name))
	require.NoError(t, err, name)
	m, ok := o.(T)
	require.True(t, ok, "%s holds a %T", name, o)
	return m
}

func TestManifestsMatchPublishedTypes(t *testing.T) {
	for _, file := range manifestFiles(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "\n---", "%s: only the first manifest of a file would be decoded", file)
		o, err := decode(text)
		require.NoError(t, err, file)
		assert.NotEmpty(t, o.GetName(), file)
		if config, ok := o.(*core.ConfigMap); ok && config.Data["pilotfish.yaml"] != "" {
			assert.Contains(t, config.Data["pilotfish.yaml"], "\nwatch: ", "%s: nothing else notifies the process of a change", file)
		}
	}
}

// pilotfish is the program, which TestMain builds.
var pilotfish string

func TestMain(m *testing.M) { program.Main(m, &pilotfish) }

// settings is the part of a configuration that other files must be consistent with.
type settings struct {
	Listen, Admin string
	Discovery     struct {
		DNS        string
		Snapshot   string
		Kubernetes struct {
			Service, Namespace string
		}
		Consul struct {
			Address, Service string
		}
	}
	Shutdown struct{ Grace string }
}

// configuration lets pilotfish check a configuration, and decodes it.
func configuration(t *testing.T, text []byte) settings {
	t.Helper()
	must(t, pilotfish, "check", write(t, "pilotfish.yaml", text))
	var s settings
	require.NoError(t, yaml.Unmarshal(text, &s))
	return s
}

func (s settings) grace(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s.Shutdown.Grace)
	require.NoError(t, err)
	return d
}
