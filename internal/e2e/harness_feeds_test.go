//go:build cluster || mesh

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

const (
	// smallProjects are numbered from 1; their answers fit into one segment.
	smallProjects, smallItems = 400, 20
	// bigProject and the next ones have more data than sockets hold, so that
	// an answer goes on for as long as nobody reads it.
	bigProject = 1000
	bigItems   = 32 << 10
)

// newFeeds makes a directory of product data, for all small projects and some big ones.
func newFeeds(t *testing.T, big int) string {
	t.Helper()
	dir := t.TempDir()
	write := func(project int) {
		file := filepath.Join(dir, fmt.Sprintf("%d.csv", project))
		require.NoError(t, os.WriteFile(file, []byte(feed(project, "")), 0o600))
	}
	for p := 1; p <= smallProjects; p++ {
		write(p)
	}
	for p := bigProject; p < bigProject+big; p++ {
		write(p)
	}
	return dir
}

// feed is a project's data. Jobs give every item a title.
func feed(project int, title string) string {
	items, filling := smallItems, ""
	if project >= bigProject {
		items, filling = bigItems, strings.Repeat("x", 1<<10)
	}
	var text strings.Builder
	text.WriteString("id,project,title,filling\n")
	for i := range items {
		fmt.Fprintf(&text, "%d,%d,%s,%s\n", i, project, title, filling)
	}
	return text.String()
}

// job is one job's text. What it asks for is like no other's answer, as the
// session is its own: no server has it ready, and no mistake goes unseen.
func job(session string, project int, priority, more string) string {
	return fmt.Sprintf(`{"session_id": %q, "project_id": %d, "priority": %q%s, "operators": [
		{"name": "Entitle", "actions": [{"field": "title", "action": "set", "value": %q}]}]}`,
		session, project, priority, more, session)
}

// rightAnswer is the hash of the only right answer to a job.
func rightAnswer(session string, project int) [sha256.Size]byte {
	return sha256.Sum256([]byte(feed(project, session)))
}
