package deploy

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomized is what kubectl apply -k would apply, in its order.
func kustomized(t *testing.T, folder ...string) resmap.ResMap {
	t.Helper()
	path := filepath.Join(append([]string{root, "deploy", "kubernetes"}, folder...)...)
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	require.NoError(t, err)
	return all
}

// objects decodes each strictly as its published type.
func objects(t *testing.T, folder ...string) (all []meta.Object) {
	t.Helper()
	for _, r := range kustomized(t, folder...).Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		o, err := decode(text)
		require.NoError(t, err, r.CurId())
		all = append(all, o)
	}
	return all
}

// of finds the one object of a type, by name.
func of[T meta.Object](t *testing.T, all []meta.Object, name string) T {
	t.Helper()
	for _, o := range all {
		if found, ok := o.(T); ok && o.GetName() == name {
			return found
		}
	}
	var none T
	require.Failf(t, "missing", "no %T is called %s", none, name)
	return none
}

// The folder is applied as it stands: in one namespace, which it makes itself, and with
// no kind that a plain cluster does not know.
func TestTheFolderIsAppliedAsItStands(t *testing.T) {
	all := objects(t)
	require.Greater(t, len(all), 8)
	space := of[*core.Namespace](t, all, "pilotfish")
	for _, o := range all {
		if o != meta.Object(space) {
			assert.Equal(t, space.Name, o.GetNamespace(), o.GetName())
		}
	}
	for _, r := range kustomized(t).Resources() {
		assert.NotContains(t, r.GetApiVersion(), "monitoring", "the operator may not be there")
	}
	assert.Len(t, objects(t, "monitor"), 1)
}

// The sidecar may ask for what its configuration has it ask for, and nothing else may.
func TestTheSidecarMayAskForSlices(t *testing.T) {
	all := objects(t)
	pod := of[*apps.Deployment](t, all, "submitter").Spec.Template.Spec
	account := of[*core.ServiceAccount](t, all, pod.ServiceAccountName)
	assert.False(t, *account.AutomountServiceAccountToken)
	binding := of[*rbac.RoleBinding](t, all, "pilotfish-discovery")
	assert.Equal(t, []rbac.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects)
	role := of[*rbac.Role](t, all, binding.RoleRef.Name)
	assert.Equal(t, []rbac.PolicyRule{{
		APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"},
	}}, role.Rules)

	const secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
	var token string
	for _, m := range pod.InitContainers[0].VolumeMounts {
		if m.MountPath == secrets {
			token = m.Name
		}
	}
	require.NotEmpty(t, token, "the sidecar has no token")
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			assert.NotEqual(t, token, m.Name, "%s needs none", c.Name)
		}
	}
	var paths []string
	for _, v := range pod.Volumes {
		if v.Name != token {
			continue
		}
		for _, s := range v.Projected.Sources {
			switch {
			case s.ServiceAccountToken != nil:
				paths = append(paths, s.ServiceAccountToken.Path)
			case s.ConfigMap != nil:
				paths = append(paths, s.ConfigMap.Items[0].Path)
			case s.DownwardAPI != nil:
				paths = append(paths, s.DownwardAPI.Items[0].Path)
			}
		}
	}
	assert.Equal(t, []string{"token", "ca.crt", "namespace"}, paths, "where client-go looks for them")
}

// An upstream's pod drains: it lives on after the notice for as long as its jobs take,
// and stays ready meanwhile.
func TestUpstreamsDrain(t *testing.T) {
	all := objects(t)
	pod := of[*apps.Deployment](t, all, "ruleserver").Spec.Template
	c := pod.Spec.Containers[0]
	require.NotNil(t, c.Lifecycle.PreStop.Sleep, "the image has no shell")
	assert.Positive(t, c.Lifecycle.PreStop.Sleep.Seconds)
	assert.Greater(t, *pod.Spec.TerminationGracePeriodSeconds, c.Lifecycle.PreStop.Sleep.Seconds+120)
	assert.Contains(t, c.Args, "120s")
	assert.Equal(t, "/livez", c.ReadinessProbe.HTTPGet.Path, "/healthz fails while it drains, and the pod would vanish")

	budget := of[*policy.PodDisruptionBudget](t, all, "ruleserver")
	for name, selector := range map[string]labels.Selector{
		"the budget":  selectorOf(t, budget.Spec.Selector),
		"the service": labels.SelectorFromSet(of[*core.Service](t, all, "ruleserver").Spec.Selector),
	} {
		assert.True(t, selector.Matches(labels.Set(pod.Labels)), name)
	}
	assert.Equal(t, int32(9001), c.Ports[0].ContainerPort)
}

func selectorOf(t *testing.T, s *meta.LabelSelector) labels.Selector {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(s)
	require.NoError(t, err)
	return selector
}
