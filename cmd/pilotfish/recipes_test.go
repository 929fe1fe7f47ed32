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

// llm is a vLLM server without a model. It caches each block of the requests that it has read, together with the text before it.
type llm struct {
	*fakeupstream.Upstream
	waiting atomic.Int64

	mu            sync.Mutex
	blocks        map[string]bool
	tokens, found int // sums over all prompts
}

// newLLM starts a server with an empty cache.
func newLLM(t *testing.T) *llm {
	l := &llm{blocks: map[string]bool{}}
	l.Upstream = fakeupstream.New(t, fakeupstream.Options{Handler: l, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "vllm:num_requests_running 0\nvllm:num_requests_waiting{model_name=\"llama\"} %d.0\n", l.waiting.Load())
	})})
	return l
}

func (l *llm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const tokenBytes, blockTokens = 4, 16
	prompt, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens, found := len(prompt)/tokenBytes, 0
	for end := blockTokens; end <= tokens; end += blockTokens {
		if begin := string(prompt[:end*tokenBytes]); l.blocks[begin] {
			found = end
		} else {
			l.blocks[begin] = true
		}
	}
	l.tokens, l.found = l.tokens+tokens, l.found+found
	fmt.Fprintf(w, `{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`, tokens, found)
}

// complete posts a chat to a sidecar or a server, and expects a response.
func complete(t *testing.T, url, chat string) {
	t.Helper()
	res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(chat))
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", text)
}

// Chats that share a template go to the upstream that has read it, until prompts wait there. Each chat finds its
// cached blocks. explain shows the place and the cost.
func TestRecipeVLLMFindsWhatWasRead(t *testing.T) {
	servers := []*llm{newLLM(t), newLLM(t), newLLM(t)}
	cfg, _, err := config.Load("../../deploy/recipes/vllm.yaml")
	require.NoError(t, err)
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Reports.Interval, cfg.Reports.Timeout, cfg.Retry.ConnectTimeout = 500*time.Millisecond, patience, patience // long enough for a busy machine
	var list strings.Builder
	for _, l := range servers {
		fmt.Fprintln(&list, l.Address(), "cores=64")
	}
	cfg.Discovery.File = written(t, []byte(list.String()))
	s, p := running(t, &cfg)
	url := "http://" + p.Jobs.Addr().String()
	// wait lets prompts wait at the servers that have read any, until the sidecar knows that.
	wait := func(prompts int64) {
		want := map[string]float64{}
		for _, l := range servers {
			if l.tokens > 0 {
				l.waiting.Store(prompts)
			}
			want[l.Address()] = float64(l.waiting.Load())
		}
		require.Eventually(t, func() bool {
			states := s.balancer.States()
			return len(states) == len(servers) && !slices.ContainsFunc(states, func(s pool.State) bool {
				return s.ReportAge < 0 || s.Stalled != want[s.Address] || s.Cores != 64
			})
		}, patience, time.Millisecond)
	}
	body := func(chat, turns int) string {
		messages := fmt.Sprintf(`{"role":"system","content":%q}`, strings.Repeat("You are a pirate. ", 130))
		for turn := range turns {
			messages += fmt.Sprintf(`,{"role":"user","content":%q}`, strings.Repeat(fmt.Sprintf("question %d of chat %d. ", turn, chat), 80))
		}
		return fmt.Sprintf(`{"model":"llama","messages":[%s]}`, messages)
	}
	wait(0)
	const chats, turns = 12, 6
	for turn := range turns {
		for chat := range chats {
			if turn == 0 && chat == chats/2 {
				wait(200)
			}
			complete(t, url, body(chat, turn+1))
		}
		wait(0)
	}
	tokens, found, used := 0, 0, 0
	for _, l := range servers {
		tokens, found = tokens+l.tokens, found+l.found
		if l.tokens > 0 {
			used++
			assert.Equal(t, "text", l.Jobs()[0].Header.Get("Endpoint-Load-Metrics-Format"))
		}
	}
	assert.Greater(t, used, 1, "a template does not keep all chats together")
	assert.Greater(t, float64(found)/float64(tokens), 0.6, "of a text of six turns, the last is new")

	explain := func(chat, turns int) (pick struct {
		Project string
		Ranking []pool.Ranked
	}) {
		w := handle(s.admin(), "POST", "/api/pick", body(chat, turns))
		require.Equal(t, 200, w.Code, w.Body.String())
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &pick))
		return pick
	}
	pick := explain(3, turns)
	assert.Regexp(t, `^llama/[0-9a-f]{16}$`, pick.Project)
	best := slices.MaxFunc(pick.Ranking, func(a, b pool.Ranked) int { return cmp.Compare(a.Found, b.Found) })
	assert.InDelta(t, 0.95, best.Found, 1e-9, "all of the chat")
	for _, r := range pick.Ranking {
		assert.Equal(t, r.Found < best.Found, r.Cost.Fetch > best.Cost.Fetch, "what is not there is the price")
	}

	away := func() (most float64) { // the cost of any but the first place, besides that of the text
		for _, r := range explain(100, 2).Ranking {
			most = max(most, r.Cost.Placement/r.Cost.Fetch)
		}
		return most
	}
	before := away()
	for chat := 20; chat < 40; chat++ { // as if from other sidecars
		for _, l := range servers {
			complete(t, l.URL, body(chat, 2))
		}
		complete(t, url, body(chat, 2))
	}
	assert.Greater(t, away(), before+0.1, "responses reported that other sidecars send chats to their first-ranked upstreams")
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
