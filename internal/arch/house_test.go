package arch

// The house rules that a script can check: how large files are, that there is one
// lease, and that names are exported for somebody.

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is one Go file of the module.
type source struct {
	path  string // from the root: internal/pool/pool.go
	lines int
	file  *ast.File
}

// sources are the module's Go files, tests among them.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	require.NoError(t, fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || path == "tools"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution|parser.ParseComments)
		all = append(all, source{path, bytes.Count(text, []byte("\n")), file})
		return err
	}))
	require.Greater(t, len(all), 200)
	return all
}

// TestPlainWords: comments, and texts that users see, do without words that make a
// second reading necessary.
func TestPlainWords(t *testing.T) {
	rare := regexp.MustCompile(`(?i)\b(amid|amidst|in vain|lest|nought|whence|whereby|whom)\b`)
	for _, s := range sources(t) {
		for _, group := range s.file.Comments {
			assert.NotRegexp(t, rare, group.Text(), s.path)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && !strings.HasPrefix(s.path, "internal/arch/") {
				assert.NotRegexp(t, rare, text.Value, s.path)
			}
			return true
		})
	}
}

func TestSizesOfFiles(t *testing.T) {
	var small []string
	for _, s := range sources(t) {
		assert.LessOrEqual(t, s.lines, 350, "%s holds more than one noun: split it", s.path)
		if s.lines <= 40 {
			small = append(small, s.path)
		}
	}
	assert.Less(t, len(small), 25, "files of at most 40 lines hold a thought, not a noun; merge some of\n%s", strings.Join(small, "\n"))
}

func TestThereIsOneLease(t *testing.T) {
	var leases []string
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if d, ok := n.(*ast.TypeSpec); ok && d.Name.Name == "Lease" {
				leases = append(leases, s.path)
			}
			return true
		})
	}
	assert.Len(t, leases, 1, "a claim has one lease: %v", leases)
}

// A name of internal/ is exported for other packages, tests among them, or because
// it stands in the signature or the fields of something that is. The values of one
// block of constants belong together.
func TestExportedNamesAreUsedElsewhere(t *testing.T) {
	all := declarations(t)
	live := map[name]bool{}
	var use func(n name)
	use = func(n name) {
		d := all[n]
		if d == nil || live[n] {
			return
		}
		live[n] = true
		for _, other := range d.seen {
			use(name{n.dir, other})
		}
	}
	for _, s := range sources(t) {
		for _, n := range usedElsewhere(s) {
			use(n)
		}
	}
	var idle []string
	for n := range all {
		if ast.IsExported(n.ident) && !live[n] {
			idle = append(idle, n.dir+"."+n.ident)
		}
	}
	require.Greater(t, len(live), 100)
	slices.Sort(idle)
	assert.Empty(t, idle, "only their own packages use these: unexport them")
}

// name is a package-level name.
type name struct{ dir, ident string }

// declaration is what others see through a name: those that stand in its
// signature, its exported fields and the signatures of its exported methods.
type declaration struct{ seen []string }

// declarations are those of the packages of internal/, without their tests.
func declarations(t *testing.T) map[name]*declaration {
	all := map[name]*declaration{}
	add := func(dir, ident string, seen ...string) {
		n := name{dir, ident}
		if all[n] == nil {
			all[n] = new(declaration)
		}
		all[n].seen = append(all[n].seen, seen...)
	}
	for _, s := range sources(t) {
		dir := path.Dir(s.path)
		if strings.HasSuffix(s.path, "_test.go") || !strings.HasPrefix(dir, "internal/") {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(dir, d.Name.Name, mentioned(d.Type)...)
				} else if d.Name.IsExported() {
					add(dir, mentioned(d.Recv.List[0].Type)[0], mentioned(d.Type)...)
				}
			case *ast.GenDecl:
				addValues(d, func(ident string, seen ...string) { add(dir, ident, seen...) })
			}
		}
	}
	return all
}

// addValues adds the types, variables or constants of one declaration.
func addValues(d *ast.GenDecl, add func(ident string, seen ...string)) {
	var block []string
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			add(spec.Name.Name, mentioned(spec.Type)...)
		case *ast.ValueSpec:
			for _, n := range spec.Names {
				block = append(block, n.Name)
				if spec.Type != nil {
					add(n.Name, mentioned(spec.Type)...)
				}
			}
		}
	}
	for _, ident := range block {
		if add(ident); d.Tok == token.CONST {
			add(ident, block...)
		}
	}
}

// mentioned are the names of its own package that a type mentions; of a struct, in
// its exported and embedded fields.
func mentioned(n ast.Node) (names []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false // of another package
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
					names = append(names, mentioned(f.Type)...)
				}
			}
			return false
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return names
}

// usedElsewhere are the names of other packages of the module that a file uses.
func usedElsewhere(s source) (names []name) {
	imports := map[string]string{} // directories of the module, by their names in this file
	for _, i := range s.file.Imports {
		dir, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
		if !ours || dir == path.Dir(s.path) {
			continue
		}
		as := path.Base(dir)
		if i.Name != nil {
			as = i.Name.Name
		}
		imports[as] = dir
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && imports[x.Name] != "" {
				names = append(names, name{imports[x.Name], selector.Sel.Name})
			}
		}
		return true
	})
	return names
}
