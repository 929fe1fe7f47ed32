// Package arch checks the code against the import table of docs/architecture.md.
package arch

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "example.org/pilotfish/"

// layers lists the packages that each package can import, by layer. A package can import
// packages of lower layers; values can import values; shells never import each other.
var layers = []struct {
	name     string
	siblings bool // may packages of this layer import each other?
	packages []string
}{
	{"values", true, []string{
		"pkg/selection", "pkg/selection/policytest",
		"internal/hash", "internal/health", "internal/ruleserver/example", "internal/ruleserver/order", "internal/intake", "internal/overload", "internal/settings",
		"internal/recent", "internal/prompts",
	}},
	{"pool", false, []string{"internal/pool"}},
	{"machines", false, []string{"internal/dispatch"}},
	{"lock", false, []string{"internal/balancer", "internal/breaker"}},
	{"record", false, []string{"internal/record"}},
	{"job", false, []string{"internal/job", "internal/quality"}},
	{"files", false, []string{"internal/files", "internal/httpclient"}},
	{"wire", false, []string{"internal/proxy/http1", "internal/proxy/lazyconn", "internal/mesh/h2"}},
	{"shells", false, []string{
		"internal/proxy", "internal/proxy/upstreamclient", "internal/proxy/submitterserver", "internal/discovery", "internal/report", "internal/report/events", "internal/metrics",
		"internal/ruleserver", "internal/ruleserver/executor", "internal/ruleserver/rules",
		"internal/cli", "internal/mesh", "internal/tracing",
		"internal/logging", "internal/logging/early", "internal/memory", "internal/ports", "test/balancing", "test/certs", "test/dump", "test/grafana", "test/manual", "test/memnet", "test/loopback", "test/peer", "test/program", "test/wirecases",
	}},
	{"surface", false, []string{"internal/config", "internal/admin", "internal/demo", "pkg/fakeupstream"}},
	{"commands", false, []string{"internal/operator"}},
	{"programs", false, []string{"cmd/pilotfish", "cmd/ruleserver"}},
}

// machines is the level up to which packages are plain code: no clock, no lock, no goroutine,
// and no library except JSON and those that they own.
const machines = 2

// owners names the only package that can import a library.
var owners = map[string][]string{
	"github.com/prometheus/client_golang": {"internal/metrics", "internal/ruleserver"},
	"github.com/prometheus/common":        {"internal/report"},
	"github.com/prometheus/prometheus":    {"internal/report"},
	"github.com/hashicorp/consul/api":     {"internal/discovery", "cmd/ruleserver"},
	"go.opentelemetry.io/":                {"internal/tracing"},
	"github.com/go-logr/":                 {"internal/tracing"},
	"k8s.io/":                             {"internal/discovery"},
	"github.com/sony/gobreaker":           {"internal/breaker"},
	"github.com/tinylib/msgp":             {"internal/report/events"},
	"go.yaml.in/yaml":                     {"internal/cli"},
	"github.com/alecthomas/kong":          {"internal/cli"},
	"google.golang.org/grpc":              {"internal/mesh"},
	"github.com/envoyproxy/":              {"internal/mesh"},
}

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	level := map[string]int{}
	for i, l := range layers {
		for _, p := range l.packages {
			level[p] = i
		}
	}
	seen := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || rel == "tools" || rel == "lab" { // separate modules
			return filepath.SkipDir
		}
		p, err := build.ImportDir(path, build.IgnoreVendor)
		if err != nil || len(p.GoFiles) == 0 {
			return nil // only tests here
		}
		from, known := level[rel]
		if !known {
			t.Errorf("%s is in no layer: add it to this table and to docs/architecture.md", rel)
			return nil
		}
		seen++
		for _, imported := range p.Imports {
			checkImport(t, rel, from, imported, level)
		}
		return nil
	}))
	require.Equal(t, len(level), seen, "the layers list packages that do not exist")
}

func checkImport(t *testing.T, rel string, from int, imported string, level map[string]int) {
	if ours, ok := strings.CutPrefix(imported, module); ok {
		to, known := level[ours]
		child := strings.HasPrefix(ours, rel+"/") // a package can have subpackages
		switch {
		case !known:
			t.Errorf("%s imports %s, which is in no layer", rel, ours)
		case to > from, to == from && !layers[from].siblings && !child:
			t.Errorf("%s (%s) imports %s (%s)", rel, layers[from].name, ours, layers[to].name)
		}
		return
	}
	owned := false
	for library, allowed := range owners {
		if !strings.HasPrefix(imported, library) {
			continue
		}
		if owned = slices.Contains(allowed, rel); !owned {
			t.Errorf("%s imports %s, which belongs to %s", rel, imported, strings.Join(allowed, ", "))
		}
	}
	if from <= machines && !owned && strings.Contains(strings.Split(imported, "/")[0], ".") && !strings.HasPrefix(imported, "github.com/go-json-experiment/") {
		t.Errorf("%s (%s) imports %s: up to the machines, packages use the standard library, the JSON library and what they own", rel, layers[from].name, imported)
	}
}
