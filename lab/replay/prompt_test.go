package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
	reserved "example.org/pilotfish/test/loopback"
)

// modelServer keeps the beginnings of prompts, block by block, and notes how many full blocks of each it had. Of more than
// limit blocks it forgets those that were used least lately, the end of a prompt first; 0 forgets none.
type modelServer struct {
	limit     int
	mu        sync.Mutex
	kept      map[string]int // by beginning: the number of its last use
	uses      []string
	forgotten int // uses, from the first one on
	found     []int
}

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
	text, found, missed := p.Messages[0].Content, 0, false
	const block = trace.BlockTokens * tokenBytes
	for end := block; end <= len(text); end += block {
		if missed = missed || m.kept[text[:end]] == 0; !missed {
			found++
		}
	}
	for end := len(text) / block * block; end > 0; end -= block {
		m.uses = append(m.uses, text[:end])
		m.kept[text[:end]] = len(m.uses)
	}
	for ; m.limit > 0 && len(m.kept) > m.limit; m.forgotten++ {
		if use := m.uses[m.forgotten]; m.kept[use] == m.forgotten+1 { // it was not used since
			delete(m.kept, use)
		}
	}
	m.found = append(m.found, found)
	fmt.Fprintf(w, "data: {\"usage\":{\"prompt_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\n", len(text)/tokenBytes, found*trace.BlockTokens)
}

// prompts are requests of the trace, one after the other, and how many full blocks of each a single
// server has that forgets none.
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

// Prompts begin alike as far as the trace says, and no further.
func TestPromptsShareTheirBeginnings(t *testing.T) {
	jobs, want := prompts(t, 150)
	server := &modelServer{kept: map[string]int{}}
	results, err := replayed(t, t.Context(), jobs, nil, serve(t, server))
	require.NoError(t, err)
	for line, r := range results {
		require.True(t, r.OK(), "line %d: %d, %v", line, r.Status, r.Err)
	}
	assert.Equal(t, want, server.found)
	assert.Positive(t, sum(want), "they share")
}

// A real sidecar before four servers finds nearly all that one server would have, and more than by load.
func TestPromptsThroughASidecar(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pilotfish")
	out, err := exec.Command("go", "-C", "../..", "build", "-o", program, "./cmd/pilotfish").CombinedOutput()
	require.NoError(t, err, "%s", out)
	jobs, want := prompts(t, 400)
	found := map[string]int{}
	for _, policy := range []string{"expected", "least-in-flight"} {
		servers, addresses := make([]*modelServer, 4), make([]string, 4)
		for i := range servers {
			servers[i] = &modelServer{limit: 2000, kept: map[string]int{}}
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
	assert.Greater(t, found["expected"], sum(want)*8/10)
	assert.Less(t, found["least-in-flight"], found["expected"])
}

// sidecar starts one for texts in blocks, before servers that report nothing, and returns its URL.
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
	}, 30*time.Second, 10*time.Millisecond)
	return "http://" + jobs
}
