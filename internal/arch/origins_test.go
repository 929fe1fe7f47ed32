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

// rowsOfOrigins is the number of rows of each document's table when it was complete.
var rowsOfOrigins = map[string]int{"Thesis": 87, "Blog": 8, "OpenWhisk": 19, "Zhu": 12, "Turner": 23}

// missingOfOrigins is the number of rows that say "missing". It can only decrease.
const missingOfOrigins = 0

// Each row of docs/origins.md names files that exist, and tests and commands that run.
// No row is removed.
func TestOrigins(t *testing.T) {
	text, err := os.ReadFile("../../docs/origins.md")
	require.NoError(t, err)
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	rows, missing, section := map[string]int{}, 0, ""
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
		switch {
		case where == "missing":
			missing++
			continue
		case strings.HasPrefix(where, "outside: "):
			continue
		}
		assert.NotEmpty(t, codeOf(where), "%s names no file", line)
		assert.NotEmpty(t, codeOf(shown), "%s names no test or command", line)
		for _, file := range codeOf(where) {
			_, err := os.Stat(filepath.Join("../..", file))
			assert.NoError(t, err, "of %s", line)
		}
		for _, proof := range codeOf(shown) {
			assert.True(t, runs(t, proof, string(makefile)), "nothing runs as %q, of %s", proof, line)
		}
	}
	for section, least := range rowsOfOrigins {
		assert.GreaterOrEqual(t, rows[section], least, "rows of %s", section)
	}
	assert.LessOrEqual(t, missing, missingOfOrigins, "rows that are missing")
}

// codeOf returns the texts between backticks.
func codeOf(cell string) (all []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// runs reports whether a proof, which is a test, a target of the Makefile or a command of a program, exists.
func runs(t *testing.T, proof, makefile string) bool {
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
