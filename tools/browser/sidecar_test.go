package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
	"example.org/pilotfish/test/program"
)

// patience is the maximum duration of a wait.
const patience = 2 * time.Minute

// pilotfish is the program, which TestMain builds.
var pilotfish string

func TestMain(m *testing.M) { program.Main(m, &pilotfish) }

// sidecar is a pilotfish process.
type sidecar struct{ jobs, admin, file string } // host:port, and its configuration

// serve starts a sidecar for the upstreams at addresses, with further configuration.
func serve(t *testing.T, addresses []string, more string) sidecar {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nadmin_write: true\ndiscovery: {static: [%s]}\n%s", strings.Join(addresses, ", "), more)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	s := program.Serve(t, pilotfish, "--config", file)
	return sidecar{s.Jobs, s.Admin, file}
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

// change posts a change to the admin port, and returns the status.
func (s sidecar) change(t *testing.T, path string) int {
	t.Helper()
	response, err := http.Post("http://"+s.admin+path, "", nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// submit posts a job of a session and a project, and returns the status. Its results are
// computed once and then cached.
func (s sidecar) submit(ctx context.Context, session, project string) (int, error) {
	return s.post(ctx, map[string]any{"session_id": session, "project_id": project})
}

// work posts a job of a project whose results no other job shares.
func (s sidecar) work(ctx context.Context, n int64, project string) (int, error) {
	return s.post(ctx, map[string]any{"project_id": project, "operators": []any{map[string]any{"name": "own", "actions": []any{
		map[string]any{"field": "own", "action": "set", "value": map[string]any{"type": "static", "value": fmt.Sprint(n)}},
	}}}})
}

// post posts the example's job with changed fields.
func (s sidecar) post(ctx context.Context, changed map[string]any) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(fakeupstream.ExampleJob()), &fields); err != nil {
		return 0, err
	}
	maps.Copy(fields, changed)
	text, err := json.Marshal(fields)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.jobs+"/v1/jobs", bytes.NewReader(text))
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
