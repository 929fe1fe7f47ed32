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

// echoing starts an upstream that answers with the job itself, and its name. It
// returns its host:port.
func echoing(t *testing.T, name string) string {
	t.Helper()
	return fakeupstream.New(t, fakeupstream.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Upstream", name)
		_, _ = io.Copy(w, r.Body)
	})}).Address()
}

// The upstream that holds a project dies, is back, and then refuses
// connections. Every time the other one answers, and the submitter sees nothing of it.
func TestAJobMovesFromADeadUpstream(t *testing.T) {
	t.Parallel()
	ups := []*fakeupstream.Upstream{fakeupstream.New(t, fakeupstream.Options{}), fakeupstream.New(t, fakeupstream.Options{})}
	s := start(t, "--upstream", ups[0].Address(), "--upstream", ups[1].Address(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	post := func() string {
		res, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(fakeupstream.ExampleJob()))
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s", text)
		return string(text)
	}
	want := post()
	holder, other := ups[0], ups[1]
	if len(other.Jobs()) > 0 {
		holder, other = other, holder
	}
	require.Len(t, holder.Jobs(), 1)
	require.Empty(t, other.Jobs())

	holder.Kill()
	assert.Equal(t, want, post())
	assert.Len(t, other.Jobs(), 1)

	require.NoError(t, holder.Refuse(false))
	require.NoError(t, other.Refuse(true))
	assert.Equal(t, want, post())
	assert.Len(t, holder.Jobs(), 2)
	s.stop()
}

// Servers that tell nothing of themselves are sticky already (docs/claims.md).
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
				http.NotFound(w, r) // no metrics, no listing
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
