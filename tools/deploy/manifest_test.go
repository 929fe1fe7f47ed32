package deploy

import (
	"fmt"
	"os"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

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
