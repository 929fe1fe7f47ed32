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
	"example.org/pilotfish/test/program"
)

// recipe starts a sidecar with a file of deploy/recipes and these upstreams.
func recipe(t *testing.T, name string, upstreams []string) *sidecar {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/recipes", name))
	require.NoError(t, err)
	list := regexp.MustCompile(`static: \[.*\]`)
	require.Regexp(t, list, string(text))
	config := list.ReplaceAllString(string(text), "static: ["+strings.Join(upstreams, ", ")+"]")
	return start(t, append(options(t, config), "--explain-headers")...)
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
	caches := map[string]*program.Daemon{}
	for _, a := range addresses {
		dir := t.TempDir()
		caches[a] = program.Spawn(t, filepath.Join(dir, "log"), "varnishd", "-F", "-j", "none", "-a", a, "-b", web.Listener.Addr().String(), "-n", dir, "-s", "malloc,16m")
	}
	await(t, addresses)
	s := recipe(t, "varnish.yaml", addresses)
	const workspaces, keys = 8, 3
	visit := func() (at map[string]string) {
		at = map[string]string{}
		for key := range keys {
			for workspace := range workspaces {
				path := fmt.Sprintf("/ws-%d/%d", workspace, key)
				r := call(t, http.MethodGet, "http://"+s.jobs+path, "")
				require.Equal(t, "the page "+path, r.text)
				at[path] = r.header.Get("Pilotfish-Upstream")
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
	caches[dead].Drain()
	for path, now := range visit() {
		assert.NotEqual(t, dead, now)
		assert.Equal(t, map[bool]int{true: 2, false: 1}[first[path] == dead], backend.sent[path], path)
	}
}

// await waits until all of these servers accept connections.
func await(t *testing.T, addresses []string) {
	t.Helper()
	for _, a := range addresses {
		require.Eventually(t, func() bool { return accepts(a) }, patience, tick, a)
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
		program.Spawn(t, filepath.Join(t.TempDir(), "log"), cmp.Or(os.Getenv("PYTHON"), "python3"), "../../docs/examples/queries.py", a, tables)
	}
	await(t, addresses)
	s := recipe(t, "queries.yaml", addresses)
	s.until("both report", func(by map[string]pool.State) bool {
		return by[addresses[0]].ReportFresh && by[addresses[1]].ReportFresh
	})
	query := func(tables, text string) (at, rows string) {
		r := call(t, http.MethodPost, "http://"+s.jobs+"/v1/queries", fmt.Sprintf(`{"tables": %s, "query": %q}`, tables, text))
		require.Equal(t, http.StatusOK, r.status, r.text)
		return r.header.Get("Pilotfish-Upstream"), r.text
	}
	sales, rows := query(`["sales"]`, "select sum(amount) from sales")
	assert.JSONEq(t, `[[25000]]`, rows)
	other := addresses[0]
	if other == sales {
		other = addresses[1]
	}
	call(t, http.MethodPost, "http://"+other+"/v1/queries", `{"tables": ["regions"], "query": "select 1"}`)
	s.until("the listings are read", func(by map[string]pool.State) bool { return by[sales].Cached == 1 && by[other].Cached == 1 })
	at, _ := query(`["regions"]`, "select head from regions order by head")
	assert.Equal(t, other, at)
	at, rows = query(`["regions", "sales"]`, "select head, sum(amount) from sales join regions using (region) group by head order by head")
	assert.Equal(t, sales, at, "most bytes are there")
	assert.JSONEq(t, `[["Ada", 10000], ["Bob", 15000]]`, rows)
}

// Two servers publish the events of their caches with vLLM's libraries, one in the format of older versions. A sidecar that
// has never seen a chat sends its turns where another sidecar sent the earlier ones, until the server reports that it has
// evicted them.
func TestClientsEventsOfVLLM(t *testing.T) {
	var upstreams []string
	port := portOf(t, freeAddresses(t, 1)[0])
	for i, host := range []string{"127.0.0.2", "127.0.0.3"} {
		at := net.JoinHostPort(host, portOf(t, freeAddresses(t, 1)[0]))
		t.Setenv("VLLM_ARRAYS", fmt.Sprint(i))
		program.Spawn(t, filepath.Join(t.TempDir(), "log"), cmp.Or(os.Getenv("PYTHON"), "python3"), "clients/vllm", "serve", "m",
			"--host", host, "--port", portOf(t, at), "--num-gpu-blocks-override", "2000",
			"--kv-events-config", fmt.Sprintf(`{"enable_kv_cache_events": true, "endpoint": "tcp://%s:%s", "topic": "kv-events"}`, host, port))
		upstreams = append(upstreams, at)
	}
	await(t, upstreams)
	text, err := os.ReadFile("../../deploy/recipes/vllm.yaml")
	require.NoError(t, err)
	list := filepath.Join(t.TempDir(), "upstreams.txt")
	require.NoError(t, os.WriteFile(list, []byte(strings.Join(upstreams, " cores=64\n")+" cores=64\n"), 0o600))
	replaced := strings.NewReplacer("/etc/pilotfish/upstreams.txt", list, "\nreports:\n", "\nreports:\n  events: {port: "+port+", topic: kv-}\n")
	args := append(options(t, replaced.Replace(string(text))), "--explain-headers")
	sidecars := []*sidecar{start(t, args...), start(t, args...)}
	for _, s := range sidecars {
		subscribed := func() bool { return len(s.Logged("events of the upstream's KV cache are read")) == len(upstreams) }
		require.Eventually(t, subscribed, patience, tick)
	}
	messages := func(chat, turns int) string {
		all := `{"role": "system", "content": "Be kind to guests."}`
		for turn := range turns {
			all += fmt.Sprintf(`, {"role": "user", "content": "%s"}`, strings.Repeat(fmt.Sprintf("Question %d of chat %d. ", turn, chat), 40))
		}
		return all
	}
	send := func(s *sidecar, chat, turns int) (upstream, cache string) {
		t.Helper()
		body := fmt.Sprintf(`{"model": "m", "messages": [%s]}`, messages(chat, turns))
		r := call(t, http.MethodPost, "http://"+s.jobs+"/v1/chat/completions", body)
		require.Equal(t, http.StatusOK, r.status)
		return r.header.Get("Pilotfish-Upstream"), r.header.Get("Pilotfish-Cache")
	}
	// received waits until a sidecar has received this many events.
	received := func(s *sidecar, events int) {
		t.Helper()
		s.eventually(float64(events), "pilotfish_cache_events_total", "result", "used")
		assert.Zero(t, s.metric("pilotfish_cache_events_total", "result", "ignored"))
	}
	const chats = 10
	send(sidecars[0], -1, 1)
	received(sidecars[0], 1) // now it knows the size of blocks
	at := map[int]string{}
	for chat := range chats {
		at[chat], _ = send(sidecars[0], chat, 1)
	}
	received(sidecars[1], 1+chats)
	for chat := range chats {
		upstream, cache := send(sidecars[1], chat, 2)
		assert.Equal(t, at[chat], upstream, "chat %d", chat)
		assert.Equal(t, "cached", cache, "chat %d", chat)
	}
	for _, u := range upstreams {
		call(t, http.MethodPost, "http://"+u+"/reset_prefix_cache", "")
	}
	for i, s := range sidecars {
		received(s, 1+2*chats+len(upstreams)+i)
		_, cache := send(s, i, 1)
		assert.Equal(t, "none", cache)
	}
}
