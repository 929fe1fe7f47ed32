package h2spec

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
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

	"example.org/pilotfish/test/program"
)

// pilotfish is the program, which TestMain builds.
var pilotfish string

func TestMain(m *testing.M) { program.Main(m, &pilotfish) }

// process is the gRPC method that waits for messages. Streams of other methods end at once.
const process = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"

// exceptions are cases that only the mesh port fails, with the reason.
var exceptions = map[string]string{
	"generic/2/2: Sends a WINDOW_UPDATE frame on half-closed (remote) stream":                                                                                 noBody,
	"generic/2/3: Sends a PRIORITY frame on half-closed (remote) stream":                                                                                      noBody,
	"http2/5.1.2/1: Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded":                                                 "its streams have ended at once",
	"http2/5.3.1/1: Sends HEADERS frame that depend on itself":                                                                                                priorities,
	"http2/5.3.1/2: Sends PRIORITY frame that depend on itself":                                                                                               priorities,
	"http2/8.1.2.6/1: Sends a HEADERS frame with the \"content-length\" header field which does not equal the DATA frame payload length":                      noLength,
	"http2/8.1.2.6/2: Sends a HEADERS frame with the \"content-length\" header field which does not equal the sum of the multiple DATA frames payload length": noLength,
}

const (
	noBody     = "it expects a body, and the response is only a status"
	noLength   = "gRPC does not use the header"
	priorities = "RFC 9113 removed priorities"
)

// TestNoWorseThanTheStandardLibrary runs the conformance suite against both ports of a sidecar and against
// net/http's server. The sidecar must pass every case that net/http passes.
func TestNoWorseThanTheStandardLibrary(t *testing.T) {
	upstream, reference := serve(t), serve(t)
	jobs, mesh := sidecar(t, upstream)
	const timeout = 2 * time.Second // also the duration of each case that expects no reply
	theirs, _ := run(t, target(t, reference, "/", timeout))
	for name, c := range map[string]struct {
		address, path string
		exceptions    map[string]string
	}{"jobs": {jobs, "/", nil}, "mesh": {mesh, process, exceptions}} {
		t.Run(name, func(t *testing.T) {
			own, all := run(t, target(t, c.address, c.path, timeout))
			require.Greater(t, all, 140, "cases")
			t.Logf("%d cases: the sidecar fails %d, the standard library's server %d", all, len(own), len(theirs))
			for exception := range c.exceptions {
				assert.Contains(t, own, exception, "it passes")
			}
			for name, f := range own {
				t.Logf("fails: %s: %v", name, f.err)
				if theirs[name].test != nil || c.exceptions[name] != "" {
					continue
				}
				// On a busy machine a reply can be late. Failed cases are repeated with this timeout.
				const patience = 2 * time.Minute
				assert.NoError(t, f.again(t, target(t, c.address, c.path, patience)), "the sidecar fails, and the standard library's server does not: %s", name)
			}
		})
	}
}

// failed is a case that failed.
type failed struct {
	test *spec.TestCase
	seq  int
	err  error
}

// again repeats the case.
func (f failed) again(t *testing.T, c *config.Config) error {
	t.Helper()
	require.NoError(t, silently(func() error { return f.test.Test(c, f.seq) }))
	return f.test.Result.Error
}

// run runs all cases. It returns the failed ones by name, and the number of cases.
func run(t *testing.T, c *config.Config) (map[string]failed, int) {
	t.Helper()
	cases, bad := 0, map[string]failed{}
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

func target(t *testing.T, address, path string, timeout time.Duration) *config.Config {
	t.Helper()
	host, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return &config.Config{Host: host, Port: port, Path: path, Timeout: timeout, MaxHeaderLen: 4000, Strict: true}
}

// serve starts a server of the standard library with HTTP/1.1 and HTTP/2 without TLS, and
// returns its address.
func serve(t *testing.T) string {
	t.Helper()
	s := &http.Server{Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("a response ", 100))
	})}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go s.Serve(l) //nolint:errcheck // until it is closed
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// sidecar starts a pilotfish with one upstream, and returns its addresses for jobs and for Envoy.
func sidecar(t *testing.T, upstream string) (jobs, mesh string) {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "pilotfish.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("mesh: {listen: 127.0.0.1:0}\n"), 0o600))
	s := program.Serve(t, pilotfish, "--config", settings, "--upstream", upstream, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	return s.Jobs, s.Await("serving")["mesh"].(string)
}
