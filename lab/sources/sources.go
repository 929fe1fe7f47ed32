// Package sources computes a hash of the sources behind a result. Result files state it, so that a test finds those of older sources.
package sources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Judged lists the folders whose sources are judged. Their hash is the seed of the judge's settings.
func Judged() []string {
	return []string{"pkg/selection", "internal/pool", "internal/health", "internal/prompts", "internal/recent", "internal/breaker", "internal/ruleserver/order"}
}

// product lists the packages of the product that every result depends on.
func product() []string {
	return append(Judged(), "internal/dispatch", "internal/hash", "internal/intake", "internal/overload", "lab/agenda", "lab/stats")
}

// Simulated lists what the result of a scenario depends on, besides the scenario's file.
func Simulated() []string {
	return append(product(), "testdata/reference/thesis-results.csv", "testdata/reference/thesis-wait-variance.csv", "lab/rivals", "lab/scenario", "lab/sim", "lab/workload")
}

// Prompts lists what the results of tracelab prompts depend on.
func Prompts() []string { return append(product(), "lab/prompts", "lab/trace") }

// Hash returns the hash of files and of folders' Go sources without tests. Paths are relative to the repository's
// root. Comments and blank lines of Go sources do not count, because they change no result.
func Hash(root string, paths ...string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		files, err := below(root, path)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return "", err
			}
			if strings.HasSuffix(file, ".go") {
				text = code(text)
			}
			fmt.Fprintf(sum, "%s %d\n%s", file, len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// code returns the tokens of Go source, one per line, without comments.
func code(source []byte) (tokens []byte) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, 0)
	for {
		_, kind, literal := s.Scan()
		if kind == token.EOF {
			return tokens
		}
		tokens = fmt.Appendf(tokens, "%s %s\n", kind, literal)
	}
}

// below returns path itself if it is a file, or the folder's Go sources in order, with slashes.
func below(root, path string) ([]string, error) {
	info, err := os.Stat(filepath.Join(root, path))
	if err != nil {
		return nil, fmt.Errorf("%w: is %s the repository?", err, root)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := filepath.Glob(filepath.Join(root, path, "*.go"))
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	for i, file := range files {
		files[i] = path + "/" + filepath.Base(file)
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: there are no Go sources: is %s the repository?", filepath.Join(root, path), root)
	}
	return files, err
}
