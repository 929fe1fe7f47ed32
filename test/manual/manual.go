// Package manual generates parts of documents from the code. The tests of the
// documented packages compare the documents with them.
package manual

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The marks around the generated part of a document.
const (
	begin = "<!-- begin: made from the code -->\n"
	end   = "<!-- end -->\n"
)

// Compare compares the part of a document between its marks with a text, or replaces the part
// if update is set. The failure names the command that updates the document.
func Compare(t *testing.T, document, text, command string, update bool) {
	t.Helper()
	is, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(is), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + text + end + after
	if update {
		require.NoError(t, os.WriteFile(document, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(is), command+" -update updates it")
}

// Comments are the comments of the module's structs, from the sources.
type Comments struct {
	t    *testing.T
	read map[string]map[string]string // by type and field; of the types themselves, by type and ""
}

// NewComments returns comments for a test whose folder is two levels below the module's.
func NewComments(t *testing.T) *Comments {
	return &Comments{t: t, read: map[string]map[string]string{}}
}

// Of returns the comment of a type's field as one line, or that of the type if field is "".
func (c *Comments) Of(typ reflect.Type, field string) string {
	of := c.read[typ.String()]
	if of == nil {
		of = c.parse(typ)
		c.read[typ.String()] = of
	}
	return strings.Join(strings.Fields(of[field]), " ")
}

// parse finds the comments of a struct in the source of its package.
func (c *Comments) parse(typ reflect.Type) map[string]string {
	folder := filepath.Join("../..", strings.TrimPrefix(typ.PkgPath(), "example.org/pilotfish"))
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(c.t, err)
	fset, all := token.NewFileSet(), map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(c.t, err)
		for _, d := range file.Decls {
			types, ok := d.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, s := range types.Specs {
				spec := s.(*ast.TypeSpec)
				fields, ok := spec.Type.(*ast.StructType)
				if !ok || spec.Name.Name != typ.Name() {
					continue
				}
				all[""] = types.Doc.Text()
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						all[name.Name] = f.Doc.Text() + " " + f.Comment.Text()
					}
				}
			}
		}
	}
	return all
}
