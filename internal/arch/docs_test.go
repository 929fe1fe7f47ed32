package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Links and figures in documents refer to existing files and headings. A snippet equals its file in docs/examples, and a
// document shows or links each of these files.
func TestDocuments(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	tutorials, err := filepath.Glob("../../docs/tutorials/*.md")
	require.NoError(t, err)
	documents = append(documents, tutorials...)
	links, shown := 0, map[string]bool{}
	for _, path := range append(documents, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CHANGELOG.md", "../../deploy/README.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#]*)#?([^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "a link of %s", path)
			if m[2] != "" {
				assert.Contains(t, anchors(t, target), m[2], "a link of %s to %s", path, target)
			}
			shown[m[1]] = true
		}
		for _, m := range regexp.MustCompile("(?s)<!-- snippet: (\\S+) -->\n```\\w*\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
			file, err := os.ReadFile(filepath.Join("../../docs", m[1]))
			require.NoError(t, err)
			assert.Equal(t, string(file), m[2], "%s shows docs/%s", path, m[1])
			shown[m[1]] = true
		}
	}
	assert.Greater(t, links, 10)
	files, err := os.ReadDir("../../docs/examples")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		assert.True(t, shown["examples/"+f.Name()], "no document shows or links docs/examples/%s", f.Name())
	}
}

// No cell of the table of bounds has two bounds, separated by a semicolon.
func TestTableOfBounds(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "\n## Bounds\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	rows := regexp.MustCompile(`(?m)^\|([^|]+\|[^|]+)\|`).FindAllStringSubmatch(section, -1)
	require.Greater(t, len(rows), 50)
	for _, row := range rows {
		assert.NotContains(t, row[1], ";")
	}
}

// anchors returns those of a document's headings: in lower case, without punctuation, with hyphens for spaces.
func anchors(t *testing.T, document string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		plain := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// The log messages that docs/troubleshooting.md explains are in the sources.
func TestExplainedMessagesAreLogged(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	_, rows, _ := strings.Cut(string(text), "## By log line")
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(rows, -1)
	require.Greater(t, len(messages), 10)
	var sources strings.Builder
	for _, pattern := range []string{"../../cmd/pilotfish/*.go", "../*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				source, err := os.ReadFile(file)
				require.NoError(t, err)
				sources.Write(source)
			}
		}
	}
	for _, m := range messages {
		_, meaning, _ := strings.Cut(m[1], ": ")      // for a mode, whose name is inserted
		begin, _, since := strings.Cut(m[1], "19:17") // a time is inserted
		if since && strings.Contains(sources.String(), `"`+begin+`"`) {
			continue
		}
		if !strings.Contains(sources.String(), `"`+m[1]+`"`) && !strings.Contains(sources.String(), `return "`+meaning+`"`) {
			t.Errorf("nothing logs %q", m[1])
		}
	}
}

// rowsOfOrigins is the number of rows of each document's table when it was complete.
var rowsOfOrigins = map[string]int{"Thesis": 87, "Blog": 8, "OpenWhisk": 19, "Zhu": 12, "Turner": 23}

// Each row of docs/origins.md names files, tests and commands that exist. No row is removed.
func TestOrigins(t *testing.T) {
	text, err := os.ReadFile("../../docs/origins.md")
	require.NoError(t, err)
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	rows, section := map[string]int{}, ""
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section, _, _ = strings.Cut(title, ":")
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| section ") {
			continue
		}
		rows[section]++
		if !assert.Len(t, cells, 4, "cells of %s", line) {
			continue
		}
		where, shown := strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])
		if strings.HasPrefix(where, "outside: ") {
			continue
		}
		assert.NotEmpty(t, codeOf(where), "%s names no file", line)
		assert.NotEmpty(t, codeOf(shown), "%s names no test or command", line)
		for _, file := range codeOf(where) {
			_, err := os.Stat(filepath.Join("../..", file))
			assert.NoError(t, err, "of %s", line)
		}
		for _, proof := range codeOf(shown) {
			assert.True(t, exists(t, proof, string(makefile)), "%q does not exist, of %s", proof, line)
		}
	}
	for section, least := range rowsOfOrigins {
		assert.GreaterOrEqual(t, rows[section], least, "rows of %s", section)
	}
}

// codeOf returns the texts between backticks.
func codeOf(cell string) (all []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// exists reports whether there is a test, a target of the Makefile or a command of a program by this name.
func exists(t *testing.T, proof, makefile string) bool {
	words := strings.Fields(proof)
	switch {
	case words[0] == "make":
		return strings.Contains(makefile, "\n"+words[1]+":")
	case len(words) > 1:
		main := filepath.Join("../..", "cmd", words[0], "main.go")
		if _, err := os.Stat(main); err != nil {
			main = filepath.Join("../../lab", "cmd", words[0], "main.go")
		}
		text, err := os.ReadFile(main)
		require.NoError(t, err, "the program of %q", proof)
		for _, word := range words[2:] {
			if strings.Contains(word, "/") {
				_, err := os.Stat(filepath.Join("../..", word))
				assert.NoError(t, err, "of %q", proof)
			}
		}
		return regexp.MustCompile("(?i)\\b" + words[1] + "\\b.*cmd:").Match(text)
	}
	folder, name, found := strings.Cut(proof, ".Test")
	require.True(t, found, "%q is no folder.TestName", proof)
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "func Test"+name+"(") {
			return true
		}
	}
	return false
}
