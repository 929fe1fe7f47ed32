//go:build cluster

package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// feeds is a directory of product data, and what the right answer to a job
// without rules is for each project: the data as it is.
type feeds struct {
	dir   string
	right map[int][sha256.Size]byte
}

const (
	// smallProjects are numbered from 1; their answers fit into one segment.
	smallProjects = 40
	// bigProject is more than sockets hold, so that its answer goes on for as long as nobody reads it.
	bigProject = 1000
	bigBytes   = 32 << 20
	bigCopies  = 3 // from bigProject on
)

func newFeeds(t *testing.T) feeds {
	t.Helper()
	f := feeds{dir: t.TempDir(), right: map[int][sha256.Size]byte{}}
	for p := 1; p <= smallProjects; p++ {
		f.add(t, p, 40, "shoe")
	}
	for p := bigProject; p < bigProject+bigCopies; p++ {
		f.add(t, p, bigBytes>>10, strings.Repeat("x", 1<<10))
	}
	return f
}

// add writes a feed that is unlike any other project's.
func (f feeds) add(t *testing.T, project, items int, title string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("id,project,title\n")
	for i := range items {
		fmt.Fprintf(&text, "%d,%d,%s\n", i, project, title)
	}
	f.right[project] = sha256.Sum256([]byte(text.String()))
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("%d.csv", project)), []byte(text.String()), 0o600))
}
