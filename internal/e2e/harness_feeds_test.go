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
	// smallProjects are numbered from 1; their responses fit into one TCP segment.
	smallProjects, smallItems = 400, 20
	// bigProject and the next ones have more data than socket buffers hold, so their responses
	// do not end before they are read.
	bigProject = 1000
	bigItems   = 32 << 10
)

// newFeeds creates a directory with the data of all small projects and some big ones.
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

// feed returns a project's data. Jobs give every item a title.
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

// job returns the text of a job. Its result depends on its session, so no server has the result
// cached, and a response to another job is detected.
func job(session string, project int, priority, more string) string {
	return fmt.Sprintf(`{"session_id": %q, "project_id": %d, "priority": %q%s, "operators": [
		{"name": "Entitle", "actions": [{"field": "title", "action": "set", "value": %q}]}]}`,
		session, project, priority, more, session)
}

// rightAnswer returns the hash of the only correct response to a job.
func rightAnswer(session string, project int) [sha256.Size]byte {
	return sha256.Sum256([]byte(feed(project, session)))
}
