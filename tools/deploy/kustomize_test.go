package deploy

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	"sigs.k8s.io/yaml"

	"example.org/pilotfish/test/program"
)

// kustomized returns what kubectl apply -k would apply, in order.
func kustomized(t *testing.T, folder ...string) resmap.ResMap {
	t.Helper()
	return built(t, filepath.Join(append([]string{root, "deploy", "kubernetes"}, folder...)...))
}

func built(t *testing.T, path string) resmap.ResMap {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	require.NoError(t, err)
	return all
}

// objects decodes each object strictly as its published type.
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

// of returns the only object of a type with this name.
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

// The folder can be applied unchanged: it has one namespace, which it creates, and only kinds
// that a plain cluster has.
func TestTheFolderAppliesUnchanged(t *testing.T) {
	all := objects(t)
	require.Greater(t, len(all), 8)
	space := of[*core.Namespace](t, all, "pilotfish")
	for _, o := range all {
		if o != meta.Object(space) {
			assert.Equal(t, space.Name, o.GetNamespace(), o.GetName())
		}
	}
	for _, r := range append(kustomized(t).Resources(), kustomized(t, "mesh", "sidecar").Resources()...) {
		assert.NotContains(t, r.GetApiVersion(), "monitoring", "the operator may not be there")
	}
}

// The sidecar has permission for the requests of its configuration, and nothing else has.
func TestPermissionsOfTheSidecar(t *testing.T) {
	all := objects(t)
	pod := of[*apps.Deployment](t, all, "submitter").Spec.Template.Spec
	assert.Empty(t, pod.ServiceAccountName, "the default one")
	binding := of[*rbac.RoleBinding](t, all, "pilotfish-discovery")
	assert.Equal(t, []rbac.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: "pilotfish"}}, binding.Subjects)
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

// The pod of an upstream drains: after the notice it runs for as long as its jobs can take, and
// stays ready.
func TestUpstreamPodsDrain(t *testing.T) {
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

// The registry of all images is set in one place.
func TestTheRegistryIsSetInOnePlace(t *testing.T) {
	copied := t.TempDir()
	must(t, "cp", "-r", filepath.Join(root, "deploy"), copied)
	must(t, "sed", "-i", `s|prefix: ""|prefix: registry.test/mirror/|`, filepath.Join(copied, "deploy/kubernetes/registry/kustomization.yaml"))
	for _, folder := range []string{".", "mesh/sidecar", "mesh/gateway"} {
		found := 0
		for _, r := range built(t, filepath.Join(copied, "deploy/kubernetes", folder)).Resources() {
			for _, image := range regexp.MustCompile(`(?m)^ *image: .*`).FindAllString(r.MustYaml(), -1) {
				found++
				assert.Regexp(t, `image: registry\.test/mirror/[a-z/]+:`, image)
			}
		}
		assert.NotZero(t, found, folder)
	}
}

// The component adds the sidecar to any pod, and does not change other containers.
func TestTheComponentAddsTheSidecarToAnyPod(t *testing.T) {
	dir := t.TempDir()
	must(t, "cp", "-r", filepath.Join(root, "deploy"), dir)
	writeTo(t, filepath.Join(dir, "kustomization.yaml"), []byte("namespace: mine\nresources: [one.yaml, two.yaml]\ncomponents: [deploy/kubernetes/sidecar]\n"))
	const workload = `
apiVersion: apps/v1
kind: %s
metadata: {name: %s, labels: %s}
spec: {template: {spec: {serviceAccountName: mine, containers: [{name: mine, image: "mine:1"}]}}}
`
	writeTo(t, filepath.Join(dir, "one.yaml"), fmt.Appendf(nil, workload, "StatefulSet", "one", `{pilotfish.sidecar: "true"}`))
	writeTo(t, filepath.Join(dir, "two.yaml"), fmt.Appendf(nil, workload, "StatefulSet", "two", `{a: b}`))
	pods := map[string]core.PodSpec{}
	for _, r := range built(t, dir).Resources() {
		if r.GetKind() == "StatefulSet" {
			var s apps.StatefulSet
			require.NoError(t, yaml.UnmarshalStrict([]byte(r.MustYaml()), &s))
			pods[s.Name] = s.Spec.Template.Spec
		}
	}
	_, want := sidecar(t)
	want.Image = "pilotfish"
	require.Len(t, pods["one"].InitContainers, 1)
	assert.Equal(t, want, pods["one"].InitContainers[0])
	assert.Equal(t, "mine:1", pods["one"].Containers[0].Image)
	assert.Equal(t, "mine", pods["one"].ServiceAccountName)
	assert.Empty(t, pods["two"].InitContainers)
	assert.Empty(t, pods["two"].Volumes)
}

// The files of docs/tutorials/kubernetes.md add the sidecar to the application's pods.
func TestTheKubernetesTutorial(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "tutorials", "kubernetes.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	must(t, "cp", "-r", filepath.Join(root, "deploy"), dir)
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(text)
	require.Len(t, commands, 2)
	write := exec.Command("bash", "-euc", string(commands[1]))
	write.Dir = dir
	require.NoError(t, write.Run())
	for _, r := range built(t, filepath.Join(dir, "app")).Resources() {
		o, err := decode([]byte(r.MustYaml()))
		require.NoError(t, err, r.CurId())
		if app, ok := o.(*apps.Deployment); ok {
			require.Len(t, app.Spec.Template.Spec.InitContainers, 1)
			assert.Equal(t, "registry.example/pilotfish:0.1.0", app.Spec.Template.Spec.InitContainers[0].Image)
			return
		}
	}
	t.Error("no Deployment")
}

// The upstreams of the folder can serve the jobs of its submitter with the data that they
// mount.
func TestUpstreamsCanServeTheSubmittersJobs(t *testing.T) {
	all := objects(t)
	upstream := of[*apps.Deployment](t, all, "ruleserver").Spec.Template.Spec
	data := of[*core.ConfigMap](t, all, upstream.Volumes[0].ConfigMap.Name).Data
	feeds := t.TempDir()
	for _, item := range upstream.Volumes[0].ConfigMap.Items {
		require.Contains(t, data, item.Key)
		writeTo(t, filepath.Join(feeds, item.Path), []byte(data[item.Key]))
	}
	ruleserver, err := program.Build(t.TempDir(), "ruleserver")
	require.NoError(t, err)
	server := exec.Command(ruleserver, "--listen", "127.0.0.1:0", "--feeds", feeds)
	said, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	var at string
	_, err = fmt.Fscanf(said, "ruleserver: listening on %s", &at)
	require.NoError(t, err)

	command := of[*apps.Deployment](t, all, "submitter").Spec.Template.Spec.Containers[0].Command
	submitter := exec.Command(command[0], command[1:]...)
	submitter.Env = append(os.Environ(), "PILOTFISH_URL="+at)
	statuses, err := submitter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, submitter.Start())
	t.Cleanup(func() { _ = submitter.Process.Kill(); _ = submitter.Wait() })
	lines := bufio.NewScanner(statuses)
	for range 9 { // each project once, then the first again
		require.True(t, lines.Scan())
		require.Equal(t, "200", lines.Text())
	}
}
