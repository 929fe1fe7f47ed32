//go:build clients

package e2e

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two servers publish the events of their caches with vLLM's libraries, one in the format of older versions. A sidecar that
// has never seen a chat sends its turns where another sidecar sent the earlier ones, until the server reports that it has
// evicted them.
func TestClientsEventsOfVLLM(t *testing.T) {
	var upstreams []string
	port := portOf(t, freeAddresses(t, 1)[0])
	for i, host := range []string{"127.0.0.2", "127.0.0.3"} {
		at := net.JoinHostPort(host, portOf(t, freeAddresses(t, 1)[0]))
		t.Setenv("VLLM_ARRAYS", fmt.Sprint(i))
		spawn(t, filepath.Join(t.TempDir(), "log"), cmp.Or(os.Getenv("PYTHON"), "python3"), "clients/vllm", "serve", "m",
			"--host", host, "--port", portOf(t, at), "--num-gpu-blocks-override", "2000",
			"--kv-events-config", fmt.Sprintf(`{"enable_kv_cache_events": true, "endpoint": "tcp://%s:%s", "topic": "kv-events"}`, host, port))
		upstreams = append(upstreams, at)
	}
	await(t, upstreams)
	text, err := os.ReadFile("../../deploy/recipes/vllm.yaml")
	require.NoError(t, err)
	dir := t.TempDir()
	list := filepath.Join(dir, "upstreams.txt")
	require.NoError(t, os.WriteFile(list, []byte(strings.Join(upstreams, " cores=64\n")+" cores=64\n"), 0o600))
	config := filepath.Join(dir, "vllm.yaml")
	replaced := strings.NewReplacer("/etc/pilotfish/upstreams.txt", list, "\nreports:\n", "\nreports:\n  events: {port: "+port+", topic: kv-}\n")
	require.NoError(t, os.WriteFile(config, []byte(replaced.Replace(string(text))), 0o600))
	var sidecars [2]*sidecar
	for i := range sidecars {
		sidecars[i] = start(t, "--config", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--explain-headers")
		for range upstreams {
			sidecars[i].await("events of the upstream's KV cache are read")
		}
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
		resp, err := http.Post("http://"+s.jobs+"/v1/chat/completions", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		return resp.Header.Get("Pilotfish-Upstream"), resp.Header.Get("Pilotfish-Cache")
	}
	// received waits until a sidecar has received this many events.
	received := func(s *sidecar, events int) {
		t.Helper()
		require.Eventually(t, func() bool {
			return s.metric("pilotfish_cache_events_total", "result", "used") == float64(events)
		}, patience, tick)
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
		resp, err := http.Post("http://"+u+"/reset_prefix_cache", "", nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	for i, s := range sidecars {
		received(s, 1+2*chats+len(upstreams)+i)
		_, cache := send(s, i, 1)
		assert.Equal(t, "none", cache)
	}
}
