package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// patience is the maximum duration of a wait.
const patience = time.Minute

// pilotfish is the program, which TestMain builds.
var pilotfish string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pilotfish-browser-")
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

// sidecar is a pilotfish process.
type sidecar struct{ jobs, admin, file string } // host:port, and its configuration

// serve starts a sidecar for the upstreams at addresses, with further configuration.
func serve(t *testing.T, addresses []string, more string) sidecar {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nadmin_write: true\ndiscovery: {static: [%s]}\n%s", strings.Join(addresses, ", "), more)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cmd := exec.Command(pilotfish, "serve", "--config", file)
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Jobs, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return sidecar{line.Jobs, line.Admin, file}
		}
	}
	require.FailNow(t, "the sidecar does not serve")
	return sidecar{}
}

// upstreams starts servers whose jobs last some tens of milliseconds.
func upstreams(t *testing.T, n int) (list []*fakeupstream.Upstream, addresses []string) {
	t.Helper()
	for range n {
		u := fakeupstream.New(t, fakeupstream.Options{Cost: "fetch=30ms,operators=20ms"})
		list, addresses = append(list, u), append(addresses, u.Address())
	}
	return list, addresses
}

// get returns a reply of the admin port.
func get[T any](t *testing.T, s sidecar, path string) (reply T) {
	t.Helper()
	response, err := http.Get("http://" + s.admin + path)
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&reply))
	return reply
}

// submit posts a job of a session and a project, and returns the status. Its results are
// computed once and then cached.
func (s sidecar) submit(ctx context.Context, session, project string) (int, error) {
	return s.post(ctx, session, project, nil)
}

// work posts a job of a project whose results no other job shares.
func (s sidecar) work(ctx context.Context, n int64, project string) (int, error) {
	return s.post(ctx, "", project, []any{map[string]any{"name": "own", "actions": []any{
		map[string]any{"field": "own", "action": "set", "value": map[string]any{"type": "static", "value": fmt.Sprint(n)}},
	}}})
}

// post posts a job. Its operators are op, or those that all jobs share if op is nil.
func (s sidecar) post(ctx context.Context, session, project string, operators []any) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(fakeupstream.ExampleJob()), &fields); err != nil {
		return 0, err
	}
	fields["session_id"], fields["project_id"] = session, project
	if operators != nil {
		fields["operators"] = operators
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.jobs+"/v1/jobs", strings.NewReader(string(text)))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// load submits jobs one after another until the test ends or stop is called. stop returns after
// the last job has ended.
func (s sidecar) load(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var jobs sync.WaitGroup
	for worker := range 3 {
		jobs.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = s.submit(context.Background(), fmt.Sprintf("session-%d-%d", worker, i), fmt.Sprint("project-", i%7))
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); jobs.Wait() })
	t.Cleanup(stop)
	return stop
}
