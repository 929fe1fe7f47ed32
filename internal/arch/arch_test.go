// Package arch holds the import table of docs/architecture.md against the code.
package arch

import (
	"bytes"
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "example.org/pilotfish/"

// layers says which packages of ours each package may import, by layer. A
// package may import what stands in lower layers, and values may import
// values; shells never import each other.
var layers = []struct {
	name     string
	siblings bool // may packages of this layer import each other?
	packages []string
}{
	{"values", true, []string{
		"pkg/selection", "pkg/selection/rivals", "pkg/selection/policytest", "pkg/overload", "pkg/trace",
		"internal/breaker", "internal/capacity", "internal/hash", "internal/ruleserver/example", "internal/intake", "internal/settings",
		"internal/lab/workload", "internal/lab/stats", "internal/lab/results",
	}},
	{"pool", false, []string{"internal/pool"}},
	{"machines", false, []string{"internal/dispatch", "internal/quality"}},
	{"lock", false, []string{"internal/balancer"}},
	{"record", false, []string{"internal/record"}},
	{"files", false, []string{"internal/files"}},
	{"wire", false, []string{"internal/proxy/lazyconn"}},
	{"shells", false, []string{
		"internal/proxy", "internal/proxy/upstreamclient", "internal/proxy/submitterserver", "internal/discovery", "internal/report", "internal/metrics", "internal/prewarm", "internal/capture",
		"internal/ruleserver", "internal/ruleserver/executor", "internal/ruleserver/rules", "internal/ruleserver/registration",
		"internal/lab/sim", "internal/lab/replay", "internal/lab/figure", "internal/cli", "internal/memnet", "internal/loopback", "internal/mesh", "internal/tracing",
		"internal/logging", "internal/memory", "internal/ports", "internal/statefile", "internal/manual",
	}},
	{"surface", false, []string{"internal/config", "internal/admin", "internal/operator", "internal/demo", "pkg/fakeupstream", "internal/lab/scenario", "internal/lab/page"}},
	{"programs", false, []string{"cmd/pilotfish", "cmd/ruleserver", "cmd/tracelab", "bench"}},
}

// machines is the level up to which packages are plain code: no clock, no lock,
// no goroutine, and no library but the JSON one and what they own.
const machines = 2

// owners says which package alone may import a library.
var owners = map[string][]string{
	"github.com/prometheus/client_golang": {"internal/metrics", "internal/ruleserver"},
	"github.com/prometheus/common":        {"internal/report"},
	"github.com/hashicorp/consul/api":     {"internal/discovery", "internal/ruleserver/registration"},
	"go.opentelemetry.io/":                {"internal/tracing"},
	"k8s.io/":                             {"internal/discovery"},
	"k8s.io/api/":                         {}, // only a test: it brings the code of every kind
	"github.com/go-logr/logr":             {"internal/discovery"},
	"github.com/DataDog/sketches-go":      {"internal/quality"},
	"github.com/sony/gobreaker":           {}, // only a test, as an oracle
	"go.yaml.in/yaml":                     {"internal/cli"},
	"github.com/spf13/pflag":              {"internal/cli"},
	"gonum.org/v1/plot":                   {"internal/lab/figure"},
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
		if strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || rel == "tools" {
			return filepath.SkipDir
		}
		p, err := build.ImportDir(path, build.IgnoreVendor)
		if err != nil || len(p.GoFiles) == 0 {
			return nil // no Go code but tests here
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
	require.GreaterOrEqual(t, seen, 10, "the walk found too few packages to mean anything")
}

func checkImport(t *testing.T, rel string, from int, imported string, level map[string]int) {
	if ours, ok := strings.CutPrefix(imported, module); ok {
		to, known := level[ours]
		child := strings.HasPrefix(ours, rel+"/") // a package may split off parts of its own
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

// Commands are doorways: they parse, build, run and return. Their work is in
// packages that other code can use and test.
func TestCommandsAreDoorways(t *testing.T) {
	for _, command := range []struct {
		folder      string
		file, total int // the most lines
		to          string
	}{
		{"tracelab", 70, 400, "internal/lab"},
		{"pilotfish", 280, 1800, "a package of its own"}, // it wires all shells
	} {
		files, err := filepath.Glob("../../cmd/" + command.folder + "/*.go")
		require.NoError(t, err)
		total := 0
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			lines := strings.Count(string(text), "\n")
			assert.Less(t, lines, command.file, "lines of %s: move what is not the command line's to %s", path, command.to)
			total += lines
		}
		assert.Greater(t, total, 100, "the test has looked at the wrong folder")
		assert.Less(t, total, command.total, "lines of cmd/%s", command.folder)
	}
}

// Where a function that is linked looks up a method by a name that is known only at run
// time, the linker keeps every exported method of every type, and the program takes more
// memory. Libraries for command lines and templates have such functions.
func TestNoMethodIsLookedUpByName(t *testing.T) {
	compile := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags=-dumpdep",
		"-o", filepath.Join(t.TempDir(), "pilotfish"), "./cmd/pilotfish")
	compile.Dir, compile.Env = filepath.Join("..", ".."), append(compile.Environ(), "CGO_ENABLED=0")
	var needs bytes.Buffer // what needs what, in lines
	compile.Stderr = &needs
	require.NoError(t, compile.Run(), "%.2000s", &needs)
	found, lines := map[string]bool{}, 0
	byName := regexp.MustCompile(`(\S+) <ReflectMethod>`)
	for line := range bytes.Lines(needs.Bytes()) {
		lines++
		if m := byName.FindSubmatch(line); m != nil {
			found[string(m[1])] = true
		}
	}
	require.Greater(t, lines, 10000, "the linker told too little to mean anything")
	assert.Empty(t, found)
}
