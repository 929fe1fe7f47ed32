package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// echoing starts an upstream that responds with the job itself and its name. It returns its
// host:port.
func echoing(t *testing.T, name string) string {
	t.Helper()
	return fakeupstream.New(t, fakeupstream.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Upstream", name)
		_, _ = io.Copy(w, r.Body)
	})}).Address()
}

// Placement is sticky even for servers that report nothing (docs/claims.md).
func TestPlainServersGetTheProjectsTheyHave(t *testing.T) {
	t.Parallel()
	const servers, projects, jobs = 3, 20, 300
	var mu sync.Mutex
	hits := 0
	var args []string
	for range servers {
		cached := map[string]bool{}
		plain := fakeupstream.New(t, fakeupstream.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				http.NotFound(w, r) // no metrics and no listing
				return
			}
			job, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			if cached[string(job)] {
				hits++
			}
			cached[string(job)] = true
		})})
		args = append(args, "--upstream", plain.Address())
	}
	s := start(t, append(args, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")...)
	for n := range jobs {
		res, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(fmt.Sprintf(`{"project_id": %d}`, n*7%projects)))
		require.NoError(t, err)
		_ = res.Body.Close()
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	s.stop()
	assert.Equal(t, jobs-projects, hits, "each project is fetched once")
}
