// Package program builds pilotfish and runs it, for tests that use it as a separate process.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Build builds a program of cmd in a folder, and returns its path. If the tests run with the race detector, so does the program.
func Build(folder, name string) (path string, err error) {
	source, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "example.org/pilotfish").Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources of pilotfish: %w", err)
	}
	path = filepath.Join(folder, name)
	build := exec.Command("go", "-C", strings.TrimSpace(string(source)), "build", fmt.Sprintf("-race=%t", raceDetector()), "-o", path, "./cmd/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", name, err, out)
	}
	return path, nil
}

// raceDetector reports whether the tests run with the race detector.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Main builds pilotfish, sets its path, runs the tests, and exits.
func Main(m *testing.M, path *string) {
	folder, err := os.MkdirTemp("", "pilotfish-test-")
	if err == nil {
		*path, err = Build(folder, "pilotfish")
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}
