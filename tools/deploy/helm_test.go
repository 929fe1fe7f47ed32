package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var chart = filepath.Join(root, "deploy", "helm")

// chartOf generates the chart from the folder of the pickers. The namespace and the gateway's objects are
// not part of the chart.
func chartOf(t *testing.T) (template, values string) {
	t.Helper()
	for _, r := range kustomized(t, "mesh", "gateway").Resources() {
		if !strings.HasPrefix(r.GetName(), "pilotfish-picker") {
			continue
		}
		if r.GetKind() == "ConfigMap" {
			config := strings.ReplaceAll("\n"+strings.TrimSpace(r.GetDataMap()["pilotfish.yaml"]), "\n", "\n  ")
			values = "# Made from deploy/kubernetes/mesh/gateway.\nimage: pilotfish:latest\nreplicas: 2\nconfig:" + config + "\n"
			r.SetDataMap(map[string]string{"pilotfish.yaml": "CONFIG"})
		}
		text, err := r.AsYAML()
		require.NoError(t, err)
		template += "---\n" + string(text)
	}
	return strings.NewReplacer(
		"namespace: models", "namespace: {{ .Release.Namespace }}",
		"image: pilotfish:latest", "image: {{ .Values.image }}",
		"replicas: 2", "replicas: {{ .Values.replicas }}",
		"pilotfish.yaml: CONFIG", "pilotfish.yaml: |\n{{ toYaml .Values.config | indent 4 }}",
	).Replace(template), values
}

// rendered returns the objects that helm install would apply.
func rendered(t *testing.T, values map[string]any) (all []meta.Object) {
	t.Helper()
	c, err := loader.LoadDir(chart)
	require.NoError(t, err)
	with, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "picker", Namespace: "models"}, nil)
	require.NoError(t, err)
	files, err := engine.Render(c, with)
	require.NoError(t, err)
	require.Len(t, files, 1)
	for _, text := range files {
		for one := range strings.SplitSeq(strings.TrimPrefix(text, "---\n"), "\n---\n") {
			o, err := decode([]byte(one))
			require.NoError(t, err, one)
			all = append(all, o)
		}
	}
	return all
}

// The chart installs the pickers as kubectl apply -k does, with an image, a number of replicas and a
// configuration as values.
func TestTheChartEqualsTheFolder(t *testing.T) {
	template, values := chartOf(t)
	for path, text := range map[string]string{"templates/pilotfish.yaml": template, "values.yaml": values} {
		if *update {
			writeTo(t, filepath.Join(chart, path), []byte(text))
		}
		assert.Equal(t, text, string(read(t, "helm", path)), "write it anew: go -C tools/deploy test -run TheChart -update")
	}
	for _, m := range lint.All(chart, nil, "models", true).Messages {
		assert.Less(t, m.Severity, support.WarningSev, "%v", m)
	}

	config := func(o meta.Object) (text string) {
		if c, ok := o.(*core.ConfigMap); ok {
			text, c.Data = c.Data["pilotfish.yaml"], nil
			configuration(t, []byte(text))
		}
		return text
	}
	var want []meta.Object
	for _, o := range objects(t, "mesh", "gateway") {
		if strings.HasPrefix(o.GetName(), "pilotfish-picker") {
			want = append(want, o)
		}
	}
	got := rendered(t, nil)
	require.Len(t, got, len(want))
	for i := range want {
		if a, b := config(want[i]), config(got[i]); a != "" {
			assert.YAMLEq(t, a, b)
		}
		assert.Equal(t, want[i], got[i])
	}

	other := rendered(t, map[string]any{"image": "registry.test/pilotfish:1.2.3", "replicas": 5, "config": map[string]any{"shutdown": map[string]any{"grace": "1m"}}})
	d := of[*apps.Deployment](t, other, "pilotfish-picker")
	assert.Equal(t, []any{"registry.test/pilotfish:1.2.3", int32(5)}, []any{d.Spec.Template.Spec.Containers[0].Image, *d.Spec.Replicas})
	i := slices.IndexFunc(other, func(o meta.Object) bool { _, ok := o.(*core.ConfigMap); return ok })
	assert.Contains(t, config(other[i]), "grace: 1m")
}
