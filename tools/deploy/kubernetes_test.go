package deploy

import (
	"path"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
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
