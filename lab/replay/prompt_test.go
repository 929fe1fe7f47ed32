package replay

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/lab/trace"
	reserved "example.org/pilotfish/test/loopback"
)

// modelServer caches prompts in blocks, and records how many full blocks of each prompt were cached. Above limit blocks
// it evicts the least recently used, those at the end of a prompt first. 0 means no limit.
type modelServer struct {
	limit   int
	mu      sync.Mutex
	kept    map[uint64]int // by hash of the prompt up to the block's end: number of the last use
	uses    []uint64
	evicted int // number of uses that were examined for eviction
	found   []int
}

var seed = maphash.MakeSeed()

func (m *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var p struct {
		Messages []struct{ Content string }
		Stream   bool
	}
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&p) != nil || !p.Stream {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text, found, prefix := p.Messages[0].Content, 0, []uint64{0}
	const block = trace.BlockTokens * tokenBytes
	for end := block; end <= len(text); end += block {
		key := hash.Pair(prefix[len(prefix)-1], maphash.String(seed, text[end-block:end]))
		if m.kept[key] > 0 && found == len(prefix)-1 {
			found++
		}
		prefix = append(prefix, key)
	}
	for _, key := range slices.Backward(prefix[1:]) {
		m.uses = append(m.uses, key)
		m.kept[key] = len(m.uses)
	}
	for ; m.limit > 0 && len(m.kept) > m.limit; m.evicted++ {
		if use := m.uses[m.evicted]; m.kept[use] == m.evicted+1 { // it was not used again
			delete(m.kept, use)
		}
	}
	m.found = append(m.found, found)
	fmt.Fprintf(w, "data: {\"usage\":{\"prompt_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\n", len(text)/tokenBytes, found*trace.BlockTokens)
}

// prompts returns the first n requests of the trace, each sent after the one before, and how many full blocks of each
// would be cached on a single server without eviction.
func prompts(t *testing.T, n int) (jobs []trace.Job, found []int) {
	t.Helper()
	all, err := trace.Prompts("../../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	kept := map[int64]bool{}
	for _, j := range all[:n] {
		here, full := 0, j.Blocks[:j.Read/trace.BlockTokens]
		for here < len(full) && kept[full[here]] {
			here++
		}
		for _, b := range full {
			kept[b] = true
		}
		j.Offset, j.After = 0, trace.Line(len(jobs))
		jobs, found = append(jobs, j), append(found, here)
	}
	return jobs, found
}

func sum(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

// Prompts share exactly the prefixes in the trace.
func TestPromptsShareTheirBeginnings(t *testing.T) {
	jobs, want := prompts(t, 150)
	server := &modelServer{kept: map[uint64]int{}}
	results, err := replayed(t, t.Context(), jobs, nil, serve(t, server))
	require.NoError(t, err)
	for line, r := range results {
		require.True(t, r.OK(), "line %d: %d, %v", line, r.Status, r.Err)
	}
	assert.Equal(t, want, server.found)
	assert.Positive(t, sum(want), "shared blocks")
}

// With a sidecar and four servers, nearly as many blocks are found as on a single server, whatever the addresses, and more
// than with a choice by load. A server has memory for its share of the blocks and a quarter more: with less, the evictions
// would depend on the addresses.
func TestPromptsThroughASidecar(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pilotfish")
	out, err := exec.Command("go", "-C", "../..", "build", "-o", program, "./cmd/pilotfish").CombinedOutput()
	require.NoError(t, err, "%s", out)
	jobs, want := prompts(t, 400)
	found := map[string]int{}
	for _, policy := range []string{"expected", "least-in-flight"} {
		servers, addresses := make([]*modelServer, 4), make([]string, 4)
		for i := range servers {
			servers[i] = &modelServer{limit: 3000, kept: map[uint64]int{}}
			addresses[i] = strings.TrimPrefix(serve(t, servers[i]), "http://")
		}
		results, err := replayed(t, t.Context(), jobs, nil, sidecar(t, program, policy, addresses))
		require.NoError(t, err)
		for line, r := range results {
			require.True(t, r.OK(), "line %d: %d, %v", line, r.Status, r.Err)
		}
		for _, s := range servers {
			found[policy] += sum(s.found)
		}
	}
	t.Logf("blocks found, of %d: %v", sum(want), found)
	assert.Greater(t, found["expected"], sum(want)*9/10)
	assert.Less(t, found["least-in-flight"], found["expected"])
}

// sidecar starts a sidecar that reads texts in blocks, with servers that report nothing, and returns its URL.
func sidecar(t *testing.T, program, policy string, upstreams []string) string {
	t.Helper()
	jobs, err := reserved.Reserve()
	require.NoError(t, err)
	admin, err := reserved.Reserve()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
listen: %s
admin: %s
discovery: {static: [%s]}
job: {project: [/model, {pointer: /messages, blocks: 2KiB}]}
reports: none
selection: {policy: %s}
log: {level: error}
`, jobs, admin, strings.Join(upstreams, ", "), policy), 0o600))
	cmd := exec.CommandContext(t.Context(), program, "serve", "--config", file)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		r, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, 5*time.Minute, 10*time.Millisecond) // a generous limit for a busy machine
	return "http://" + jobs
}
