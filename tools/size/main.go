// Size prints how large the project is: lines of each part, words of documents, configuration
// keys, metric families, direct requirements, and upward arrows between files.
//
// An arrow leads from a file to another file of its package that declares a name it uses. The
// files of a package are sorted so that the fewest arrows point upward; the remaining ones are
// due to cycles. A package without upward arrows can be read from top to bottom.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

// part is a part of the project, by prefixes of its files' paths.
type part struct {
	name   string
	within []string
	except []string
}

func run() error {
	listed, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Fields(string(listed))
	for _, r := range []part{
		{"product", []string{"internal/", "cmd/pilotfish/"}, []string{"internal/ruleserver/"}},
		{"pkg", []string{"pkg/"}, nil},
		{"reference server", []string{"internal/ruleserver/", "cmd/ruleserver/"}, nil},
		{"laboratory", []string{"lab/"}, nil},
		{"tools, support of tests", []string{"tools/", "docs/", "deploy/", "test/"}, nil},
		{"all", []string{""}, nil},
	} {
		code, tests := 0, 0
		for _, f := range files {
			if !strings.HasSuffix(f, ".go") || !begins(f, r.within) || begins(f, r.except) {
				continue
			}
			n, err := count(f, "\n")
			if err != nil {
				return err
			}
			if strings.HasSuffix(f, "_test.go") {
				tests += n
			} else {
				code += n
			}
		}
		fmt.Printf("%-28s %6d lines  %6d of tests\n", r.name, code, tests)
	}
	words, families := 0, map[string]bool{}
	for _, f := range files {
		if path.Dir(f) == "internal/metrics" && !strings.HasSuffix(f, "_test.go") {
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			for _, name := range regexp.MustCompile(`"pilotfish_\w+"`).FindAllString(string(text), -1) {
				families[name] = true
			}
		}
		if f == "README.md" || path.Dir(f) == "docs" && strings.HasSuffix(f, ".md") {
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			words += len(bytes.Fields(text))
		}
	}
	fmt.Printf("%-28s %6d\n%-28s %6d\n", "words of documents", words, "metric families", len(families))
	for _, m := range []struct{ name, file, pattern string }{
		// A section is not counted as a key, only its members.
		{"configuration keys", "docs/configuration.md", "(?m)^\\| `[a-z_.0-9]+` \\| (?:[^s]|size)"},
		{"direct requirements", "go.mod", `(?m)^\t\S+ v\S+$`},
	} {
		text, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		fmt.Printf("%-28s %6d\n", m.name, len(regexp.MustCompile(m.pattern).FindAll(text, -1)))
	}
	for _, folder := range []string{"internal/pool", "internal/proxy", "cmd/pilotfish"} {
		n, err := upward(folder)
		if err != nil {
			return err
		}
		fmt.Printf("%-28s %6d\n", "upward arrows, "+folder, n)
	}
	return nil
}

func begins(file string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(file, folder) })
}

func count(file, what string) (int, error) {
	text, err := os.ReadFile(file)
	return bytes.Count(text, []byte(what)), err
}

// none is an importer that fails: only names of the package itself matter here.
type none struct{}

func (none) Import(string) (*types.Package, error) { return nil, os.ErrNotExist }

// upward returns the number of upward arrows between the files of a folder in their best order.
func upward(folder string) (int, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return 0, err
	}
	var parsed []*ast.File
	fset := token.NewFileSet()
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		parsed = append(parsed, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Importer: none{}, Error: func(error) {}}
	pkg, _ := cfg.Check(folder, fset, parsed, &info) // imports are missing
	arrows := map[[2]string]bool{}
	for ident, object := range info.Uses {
		from, to := fset.Position(ident.Pos()).Filename, fset.Position(object.Pos()).Filename
		if object.Pkg() == pkg && object.Pos().IsValid() && from != to {
			arrows[[2]string{from, to}] = true
		}
	}
	return fewest(arrows), nil
}

// fewest sorts files by moving one at a time to its best place, until nothing improves.
func fewest(arrows map[[2]string]bool) int {
	var order []string
	for a := range arrows {
		for _, f := range a {
			if !slices.Contains(order, f) {
				order = append(order, f)
			}
		}
	}
	slices.Sort(order)
	best := against(order, arrows)
	for improved := true; improved; {
		improved = false
		for i := range order {
			for j := range order {
				next := slices.Clone(order)
				f := next[i]
				next = slices.Insert(slices.Delete(next, i, i+1), j, f)
				if n := against(next, arrows); n < best {
					order, best, improved = next, n, true
				}
			}
		}
	}
	return best
}

func against(order []string, arrows map[[2]string]bool) (n int) {
	place := map[string]int{}
	for i, f := range order {
		place[f] = i
	}
	for a := range arrows {
		if place[a[0]] > place[a[1]] {
			n++
		}
	}
	return n
}
