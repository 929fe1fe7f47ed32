//go:build clients

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// recipe starts a sidecar with a file of deploy/recipes and these upstreams.
func recipe(t *testing.T, name string, upstreams []string) *exampleSidecar {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/recipes", name))
	require.NoError(t, err)
	list := regexp.MustCompile(`static: \[.*\]`)
	require.Regexp(t, list, string(text))
	config := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(config, list.ReplaceAll(text, []byte("static: ["+strings.Join(upstreams, ", ")+"]")), 0o600))
	return &exampleSidecar{start(t, "--config", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--explain-headers")}
}

// pages is the server from which caches fetch. It counts the requests for each page.
type pages struct {
	mu   sync.Mutex
	sent map[string]int
}

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[r.URL.Path]++
	w.Header().Set("Cache-Control", "max-age=3600")
	_, _ = io.WriteString(w, "the page "+r.URL.Path)
}

// Two real Varnish caches store each page of a workspace once. When one is stopped, the other fetches only the
// pages of that one's workspaces.
func TestClientsRecipeVarnish(t *testing.T) {
	backend := &pages{sent: map[string]int{}}
	web := httptest.NewServer(backend)
	t.Cleanup(web.Close)
	addresses := freeAddresses(t, 2)
	caches := map[string]*daemon{}
	for _, a := range addresses {
		dir := t.TempDir()
		caches[a] = spawn(t, filepath.Join(dir, "log"), "varnishd", "-F", "-j", "none", "-a", a, "-b", web.Listener.Addr().String(), "-n", dir, "-s", "malloc,16m")
	}
	await(t, addresses)
	s := recipe(t, "varnish.yaml", addresses)
	const workspaces, keys = 8, 3
	visit := func() (at map[string]string) {
		at = map[string]string{}
		for key := range keys {
			for workspace := range workspaces {
				path := fmt.Sprintf("/ws-%d/%d", workspace, key)
				res, err := http.Get("http://" + s.jobs + path)
				require.NoError(t, err)
				text, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				require.Equal(t, "the page "+path, string(text))
				at[path] = res.Header.Get("Pilotfish-Upstream")
			}
		}
		return at
	}
	first := visit()
	assert.Equal(t, first, visit(), "a workspace stays at one cache")
	assert.Len(t, backend.sent, workspaces*keys)
	assert.Equal(t, []int{1}, slices.Compact(slices.Sorted(maps.Values(backend.sent))), "each page is fetched once")
	require.Len(t, slices.Compact(slices.Sorted(maps.Values(first))), 2, "both caches are used")

	dead := first["/ws-0/0"]
	caches[dead].drain()
	for path, now := range visit() {
		assert.NotEqual(t, dead, now)
		assert.Equal(t, map[bool]int{true: 2, false: 1}[first[path] == dead], backend.sent[path], path)
	}
}

// await waits until all of these servers accept connections.
func await(t *testing.T, addresses []string) {
	t.Helper()
	for _, a := range addresses {
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", a)
			return err == nil && conn.Close() == nil
		}, patience, tick, a)
	}
}

// Queries of a real engine are sent where their tables are: each table is loaded once, and a query of several
// tables is sent where the largest is.
func TestClientsRecipeQueries(t *testing.T) {
	tables := t.TempDir()
	for name, text := range map[string]string{
		"sales":   "region,amount\n" + strings.Repeat("north,2\nsouth,3\n", 5000),
		"regions": "region,head\nnorth,Ada\nsouth,Bob\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(tables, name+".csv"), []byte(text), 0o600))
	}
	addresses := freeAddresses(t, 2)
	for _, a := range addresses {
		spawn(t, filepath.Join(t.TempDir(), "log"), cmp.Or(os.Getenv("PYTHON"), "python3"), "../../docs/examples/queries.py", a, tables)
	}
	await(t, addresses)
	s := recipe(t, "queries.yaml", addresses)
	s.until(t, "both report", func(by map[string]pool.State) bool {
		return by[addresses[0]].ReportFresh && by[addresses[1]].ReportFresh
	})
	query := func(tables, text string) (at, rows string) {
		res, err := http.Post("http://"+s.jobs+"/v1/queries", "application/json", strings.NewReader(fmt.Sprintf(`{"tables": %s, "query": %q}`, tables, text)))
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
		return res.Header.Get("Pilotfish-Upstream"), string(body)
	}
	sales, rows := query(`["sales"]`, "select sum(amount) from sales")
	assert.JSONEq(t, `[[25000]]`, rows)
	other := addresses[0]
	if other == sales {
		other = addresses[1]
	}
	res, err := http.Post("http://"+other+"/v1/queries", "application/json", strings.NewReader(`{"tables": ["regions"], "query": "select 1"}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	s.until(t, "the listings are read", func(by map[string]pool.State) bool { return by[sales].Cached == 1 && by[other].Cached == 1 })
	at, _ := query(`["regions"]`, "select head from regions order by head")
	assert.Equal(t, other, at)
	at, rows = query(`["regions", "sales"]`, "select head, sum(amount) from sales join regions using (region) group by head order by head")
	assert.Equal(t, sales, at, "most bytes are there")
	assert.JSONEq(t, `[["Ada", 10000], ["Bob", 15000]]`, rows)
}
