//go:build clients || cluster

package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	commands = regexp.MustCompile("(?s)```sh\n(.*?)```(?:\n+```text\n(.*?)```)?")
	numbers  = regexp.MustCompile(`\d+`)
)

// tutorial runs the commands of docs/tutorials/NAME.md in order, with programs from the folders of path, and returns the
// output of each block. Each line of a block's expected output must occur, with any numbers. The loopback address differs
// from the text's, so that its ports are free, and from other tests', whose killed servers may still reset connections.
func tutorial(t *testing.T, name string, path ...string) (outputs []string) {
	t.Helper()
	const here = "127.0.0.1"
	last := fnv.New32a()
	_, _ = last.Write([]byte(t.Name())) // never fails
	address := fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%200, 1+os.Getpid()/200%250, 1+last.Sum32()%250)
	dir := t.TempDir()
	for _, folder := range []string{"docs/examples", "docs/tutorials", "deploy/recipes"} {
		files, err := filepath.Glob("../../" + folder + "/*")
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			text = []byte(strings.ReplaceAll(string(text), here, address))
			require.NoError(t, os.WriteFile(filepath.Join(dir, folder, filepath.Base(file)), text, 0o755))
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", "tutorials", name+".md"))
	require.NoError(t, err)
	blocks := commands.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	script := "set -eu\n"
	for _, block := range blocks {
		script += block[1] + "echo =====\n"
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(append(path, filepath.Dir(pilotfish), os.Getenv("PATH")), ":"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // together with the servers that it starts
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = printed, printed
	require.NoError(t, cmd.Start())
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	out, readErr := os.ReadFile(printed.Name())
	require.NoError(t, readErr)
	require.NoError(t, err, "%s", out)
	outputs = strings.Split(strings.ReplaceAll(string(out), "\r", ""), "=====\n")
	for i, block := range blocks {
		for line := range strings.Lines(block[2]) {
			assert.Contains(t, numbers.ReplaceAllString(outputs[i], "N"), numbers.ReplaceAllString(line, "N"), "output of:\n%s", block[1])
		}
	}
	return outputs
}
