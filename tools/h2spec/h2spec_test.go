package h2spec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// pilotfish is the program, which TestMain builds.
var pilotfish string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pilotfish-h2spec-")
	if err != nil {
		panic(err)
	}
	pilotfish = filepath.Join(dir, "pilotfish")
	build := exec.Command("go", "build", "-o", pilotfish, "./cmd/pilotfish")
	build.Dir, build.Stderr = filepath.Join("..", ".."), os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// TestNoWorseThanTheStandardLibrary runs the conformance suite against a sidecar and against
// net/http's server. The sidecar must pass every case that net/http passes.
func TestNoWorseThanTheStandardLibrary(t *testing.T) {
	upstream, reference := serve(t), serve(t)
	jobs := sidecar(t, upstream)
	const timeout = 2 * time.Second // also the duration of each case that expects no reply
	own, all := run(t, jobs, timeout)
	theirs, _ := run(t, reference, timeout)
	require.Greater(t, all, 140, "cases")
	t.Logf("%d cases: the sidecar fails %d, the standard library's server %d", all, len(own), len(theirs))
	for name, c := range own {
		t.Logf("fails: %s: %v", name, c.err)
		if theirs[name].test != nil {
			continue
		}
		// On a busy machine a reply can be late. Failed cases are repeated with this timeout.
		const patience = 30 * time.Second
		assert.NoError(t, c.again(t, jobs, patience), "the sidecar fails, and the standard library's server does not: %s", name)
	}
}

// failed is a case that failed.
type failed struct {
	test *spec.TestCase
	seq  int
	err  error
}

// again repeats the case.
func (f failed) again(t *testing.T, address string, timeout time.Duration) error {
	t.Helper()
	require.NoError(t, silently(func() error { return f.test.Test(target(t, address, timeout), f.seq) }))
	return f.test.Result.Error
}

// run runs all cases. It returns the failed ones by name, and the number of cases.
func run(t *testing.T, address string, timeout time.Duration) (map[string]failed, int) {
	t.Helper()
	c, cases, bad := target(t, address, timeout), 0, map[string]failed{}
	var walk func(g *spec.TestGroup)
	walk = func(g *spec.TestGroup) {
		for i, test := range append(g.Tests, g.StrictTests...) {
			require.NoError(t, silently(func() error { return test.Test(c, i+1) }), "%s: %s", g.ID(), test.Desc)
			cases++
			if test.Result.Failed {
				bad[fmt.Sprintf("%s/%d: %s", g.ID(), i+1, test.Desc)] = failed{test, i + 1, test.Result.Error}
			}
		}
		for _, sub := range g.Groups {
			walk(sub)
		}
	}
	for _, g := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		walk(g)
	}
	return bad, cases
}

// silently calls f with standard output discarded: the suite prints each case.
func silently(f func() error) error {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer nowhere.Close()
	defer func(before *os.File) { os.Stdout = before }(os.Stdout)
	os.Stdout = nowhere
	return f()
}

func target(t *testing.T, address string, timeout time.Duration) *config.Config {
	t.Helper()
	host, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return &config.Config{Host: host, Port: port, Path: "/", Timeout: timeout, MaxHeaderLen: 4000, Strict: true}
}

// serve starts a server of the standard library with HTTP/1.1 and HTTP/2 without TLS, and
// returns its address.
func serve(t *testing.T) string {
	t.Helper()
	s := &http.Server{Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("an answer ", 100))
	})}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go s.Serve(l) //nolint:errcheck // until it is closed
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// sidecar starts a pilotfish with one upstream, and returns its address for jobs.
func sidecar(t *testing.T, upstream string) string {
	t.Helper()
	cmd := exec.Command(pilotfish, "serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	lines, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has ended
		_ = cmd.Wait()
	})
	scanner := bufio.NewScanner(lines)
	for scanner.Scan() {
		var line struct{ Jobs string }
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Jobs != "" {
			go io.Copy(io.Discard, lines) //nolint:errcheck // until the sidecar ends
			return line.Jobs
		}
	}
	require.FailNow(t, "the sidecar did not say where it serves")
	return ""
}
