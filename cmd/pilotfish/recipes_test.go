package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/fakeupstream"
)

// vllm runs a sidecar with the recipe for vLLM, with these upstreams and short intervals.
func vllm(t *testing.T, upstreams []*fakeupstream.Upstream) (s *sidecar, url string) {
	t.Helper()
	cfg, _, err := config.Load("../../deploy/recipes/vllm.yaml")
	require.NoError(t, err)
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Reports.Interval, cfg.Reports.Timeout, cfg.Retry.ConnectTimeout = 500*time.Millisecond, patience, patience // long enough for a busy machine
	var lines strings.Builder
	for _, u := range upstreams {
		fmt.Fprintln(&lines, u.Address(), "cores=64")
	}
	cfg.Discovery.File = written(t, []byte(lines.String()))
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool {
		states := s.balancer.States()
		return len(states) == len(upstreams) && !slices.ContainsFunc(states, func(s pool.State) bool { return !s.ReportFresh })
	}, patience, time.Millisecond, "every upstream has reported")
	return s, "http://" + p.Jobs.Addr().String()
}

// state returns the sidecar's state of an upstream.
func (s *sidecar) state(address string) (found pool.State) {
	for _, state := range s.balancer.States() {
		if state.Address == address {
			found = state
		}
	}
	return found
}

// complete posts a chat, and expects a response.
func complete(t *testing.T, url, body string) {
	t.Helper()
	res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", text)
}

// llm is a vLLM server without a model. It caches blocks of the prompts that it has read.
type llm struct {
	waiting atomic.Int64

	mu            sync.Mutex
	blocks        map[string]bool // prefixes of prompts that end with a block
	tokens, found int             // sums over all prompts
}

// A token has four bytes, and a block 16 tokens.
const (
	tokenBytes  = 4
	blockTokens = 16
)

// usage reads a prompt, and returns its usage with the cached tokens.
func (l *llm) usage(prompt string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens, found, prefix := len(prompt)/tokenBytes, 0, true
	for end := blockTokens; end <= tokens; end += blockTokens {
		begin := prompt[:end*tokenBytes]
		if prefix = prefix && l.blocks[begin]; prefix {
			found = end
		}
		l.blocks[begin] = true
	}
	l.tokens, l.found = l.tokens+tokens, l.found+found
	return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":%d}}`, tokens, tokens+1, found)
}

func (l *llm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model    string
		Messages []struct{ Role, Content string }
		Stream   bool
	}
	_ = json.NewDecoder(r.Body).Decode(&request) // the test's own
	prompt := ""
	for _, m := range request.Messages {
		prompt += "<" + m.Role + ">" + m.Content
	}
	usage := l.usage(request.Model + prompt)
	if strings.EqualFold(r.Header.Get("Endpoint-Load-Metrics-Format"), "text") {
		w.Header().Set("Endpoint-Load-Metrics", fmt.Sprintf("TEXT named_metrics.kv_cache_usage_perc=0.5, named_metrics.num_requests_waiting=%d", l.waiting.Load()))
	}
	if !request.Stream {
		fmt.Fprint(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Ahoy"},"finish_reason":"stop"}],`+usage+`}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, word := range []string{"A", "hoy"} {
		fmt.Fprintf(w, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[],%s}\n\ndata: [DONE]\n\n", usage)
}

func (l *llm) metrics(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="llama"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="llama"} %d.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="llama"} 5.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="llama"} 2.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="llama"} 7.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="llama"} 0.7
vllm:time_to_first_token_seconds_count{engine="0",model_name="llama"} 7.0
`, l.waiting.Load())
}

// llms starts n servers. It also returns them by address.
func llms(t *testing.T, n int) (servers map[string]*llm, upstreams []*fakeupstream.Upstream) {
	servers = map[string]*llm{}
	for range n {
		l := &llm{blocks: map[string]bool{}}
		u := fakeupstream.New(t, fakeupstream.Options{Handler: l, Metrics: http.HandlerFunc(l.metrics)})
		servers[u.Address()], upstreams = l, append(upstreams, u)
	}
	return servers, upstreams
}

// Chats that share a template go to the upstream that has read it, until prompts wait there. Each chat finds its
// cached blocks. explain shows the place and the cost.
func TestRecipeVLLMFindsWhatWasRead(t *testing.T) {
	servers, upstreams := llms(t, 3)
	s, url := vllm(t, upstreams)
	body := func(chat, turns int) string {
		messages := fmt.Sprintf(`{"role":"system","content":%q}`, strings.Repeat("You are a pirate. ", 130))
		for turn := range turns {
			messages += fmt.Sprintf(`,{"role":"user","content":%q}`, strings.Repeat(fmt.Sprintf("question %d of chat %d. ", turn, chat), 80))
		}
		return fmt.Sprintf(`{"model":"llama","stream":%v,"messages":[%s]}`, turns%2 == 0, messages)
	}
	const chats, turns = 12, 6
	for turn := range turns {
		for chat := range chats {
			if turn == 0 && chat == chats/2 {
				for address, l := range servers {
					if l.tokens > 0 {
						l.waiting.Store(200)
						require.Eventually(t, func() bool { return s.state(address).Stalled == 200 }, patience, time.Millisecond)
					}
				}
			}
			complete(t, url, body(chat, turn+1))
		}
		for _, u := range upstreams {
			for _, job := range u.Jobs() {
				require.Equal(t, "text", job.Header.Get("Endpoint-Load-Metrics-Format"))
			}
			u.Forget()
		}
		for address, l := range servers {
			l.waiting.Store(0)
			require.Eventually(t, func() bool { return s.state(address).Stalled == 0 }, patience, time.Millisecond)
		}
	}
	tokens, found, used := 0, 0, 0
	for _, l := range servers {
		tokens, found = tokens+l.tokens, found+l.found
		if l.tokens > 0 {
			used++
		}
	}
	assert.Greater(t, used, 1, "a template does not keep all chats together")
	assert.Equal(t, 64, s.state(upstreams[0].Address()).Cores)
	assert.Greater(t, float64(found)/float64(tokens), 0.6, "of a text of six turns, the last is new")

	admin := s.admin()
	type ranking struct {
		Project string
		Ranking []pool.Ranked
	}
	asked := func(body string) (pick ranking) {
		w := handle(admin, "POST", "/api/pick", body)
		require.Equal(t, 200, w.Code, w.Body.String())
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &pick))
		return pick
	}
	pick := asked(body(3, turns))
	assert.Regexp(t, `^llama/[0-9a-f]{16}$`, pick.Project)
	best := slices.MaxFunc(pick.Ranking, func(a, b pool.Ranked) int { return cmp.Compare(a.Found, b.Found) })
	assert.InDelta(t, 0.95, best.Found, 1e-9, "all of the chat")
	for _, r := range pick.Ranking {
		assert.Equal(t, r.Found < best.Found, r.Cost.Fetch > best.Cost.Fetch, "what is not there is the price")
	}

	away := func(p ranking) (most float64) { // the cost of any but the first place, besides that of the text
		for _, r := range p.Ranking {
			most = max(most, r.Cost.Placement/r.Cost.Fetch)
		}
		return most
	}
	before := away(asked(body(100, 2)))
	for chat := 20; chat < 40; chat++ { // as if from other sidecars
		for _, u := range upstreams {
			complete(t, u.URL, body(chat, 2))
		}
		complete(t, url, body(chat, 2))
	}
	assert.Greater(t, away(asked(body(100, 2))), before+0.1, "responses reported that other sidecars send chats to their first-ranked upstreams")
}

// Every recipe is a valid configuration.
func TestRecipesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../deploy/recipes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		_, warnings, err := config.Load(file)
		require.NoError(t, err, file)
		for _, w := range warnings {
			assert.Contains(t, w.Text, "cannot be read: no such file", file)
		}
	}
}
