package proxy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An exchange does not change after it was read: no method but read assigns one
// of its fields, whatever the exchange is called there.
func TestAnExchangeDoesNotChangeAfterRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	set := token.NewFileSet()
	fields := map[string]bool{}
	assigned := map[string][]string{} // by function
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.Name == "exchange" {
						for _, f := range s.Type.(*ast.StructType).Fields.List {
							for _, n := range f.Names {
								fields[n.Name] = true
							}
						}
					}
				}
			case *ast.FuncDecl:
				ast.Inspect(d, func(n ast.Node) bool {
					if a, ok := n.(*ast.AssignStmt); ok {
						for _, to := range a.Lhs {
							if field, ok := fieldOfExchange(to); ok {
								assigned[d.Name.Name] = append(assigned[d.Name.Name], field)
							}
						}
					}
					return true
				})
			}
		}
	}
	require.Greater(t, len(fields), 5, "the type exchange was found")
	require.Contains(t, assigned, "read", "the assignments in read were found")
	for function, names := range assigned {
		for _, field := range names {
			if fields[field] {
				assert.Equal(t, "read", function, "%s assigns %s", function, field)
			}
		}
	}
}

// fieldOfExchange is the field that x.field or a.x.field names.
func fieldOfExchange(e ast.Expr) (string, bool) {
	field, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	switch of := field.X.(type) {
	case *ast.Ident:
		return field.Sel.Name, of.Name == "x"
	case *ast.SelectorExpr:
		return field.Sel.Name, of.Sel.Name == "x"
	}
	return "", false
}
