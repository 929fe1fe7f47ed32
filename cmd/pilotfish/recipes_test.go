package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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

// recipe runs a sidecar with a file of deploy/recipes, with the upstreams' addresses and short
// intervals.
func recipe(t *testing.T, name string, upstreams []*fakeupstream.Upstream) (s *sidecar, url string) {
	t.Helper()
	cfg, warnings, err := config.Load(filepath.Join("../../deploy/recipes", name))
	require.NoError(t, err)
	for _, w := range warnings {
		require.Contains(t, w.Text, "cannot be read: no such file", "the file of upstreams comes below")
	}
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Reports.Interval, cfg.Reports.Timeout, cfg.Retry.ConnectTimeout = 500*time.Millisecond, patience, patience // long enough for a busy machine
	var lines, addresses []string
	for _, u := range upstreams {
		lines = append(lines, u.Address()+" cores=64\n")
		addresses = append(addresses, u.Address())
	}
	if cfg.Discovery.File != "" {
		cfg.Discovery.File = filepath.Join(t.TempDir(), "upstreams.txt")
		require.NoError(t, os.WriteFile(cfg.Discovery.File, []byte(strings.Join(lines, "")), 0o600))
	} else {
		cfg.Discovery.Static = addresses
	}
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

// exchange sends a request and returns the whole response.
func exchange(t *testing.T, method, url, body string, header ...string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(read)
}

// llm is a vLLM server without a model. It caches blocks of the prompts that it has read.
type llm struct {
	running, waiting atomic.Int64

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
		Prompt   string
		Stream   bool
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil || request.Model == "" {
		http.Error(w, `{"error":{"message":"no model","type":"BadRequestError","code":400}}`, http.StatusBadRequest)
		return
	}
	prompt := request.Prompt
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
vllm:num_requests_running{engine="0",model_name="llama"} %d.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="llama"} %d.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="llama"} 5.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="llama"} 2.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="llama"} 7.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="llama"} 0.7
vllm:time_to_first_token_seconds_count{engine="0",model_name="llama"} 7.0
`, l.running.Load(), l.waiting.Load())
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

// A session stays on one server until that server has much more load than the others.
func TestRecipeVLLM(t *testing.T) {
	servers, upstreams := llms(t, 3)
	s, url := recipe(t, "vllm.yaml", upstreams)
	// chat sends the next turn of a session, and returns its upstream.
	chat := func(turns int) (address string) {
		t.Helper()
		for _, u := range upstreams {
			u.Forget()
		}
		messages := fmt.Sprintf(`{"role":"system","content":%q}`, strings.Repeat("Speak like one. ", 70))
		for turn := range turns {
			messages += fmt.Sprintf(`,{"role":"user","content":"question %d"},{"role":"assistant","content":"Ahoy"}`, turn)
		}
		status, text := exchange(t, "POST", url+"/v1/chat/completions", `{"model":"llama","priority":3,"stream":true,"messages":[`+messages+`]}`, "X-Session-Id", "s")
		require.Equal(t, 200, status, text)
		assert.True(t, strings.HasSuffix(text, "data: [DONE]\n\n"), text)
		for _, u := range upstreams {
			for _, job := range u.Jobs() {
				assert.Equal(t, "text", job.Header.Get("Endpoint-Load-Metrics-Format"))
				address = u.Address()
			}
		}
		return address
	}
	first := chat(0)
	assert.Equal(t, first, chat(1), "a session stays where it was")
	home := servers[first]
	home.running.Store(64)
	home.waiting.Store(200)
	require.Eventually(t, func() bool {
		s := s.state(first)
		return s.Running == 64 && s.Stalled == 200
	}, patience, time.Millisecond)
	assert.Equal(t, 64, s.state(first).Cores)
	assert.NotEqual(t, first, chat(5), "the wait is longer than reading the prompt anew")

	status, text := exchange(t, "POST", url+"/v1/completions", `{"model":"llama","prompt":"Once upon"}`, "X-Priority", "high")
	assert.Equal(t, 200, status)
	assert.Contains(t, text, "Ahoy")
	status, text = exchange(t, "POST", url+"/v1/completions", `{"prompt":"Once upon"}`)
	assert.Equal(t, 400, status)
	assert.Contains(t, text, "BadRequestError", "the server's own answer passes")
}

// Chats that share a template go to the upstream that has read it, until prompts wait there. Each chat finds its
// cached blocks. explain shows the place and the cost.
func TestRecipeVLLMFindsWhatWasRead(t *testing.T) {
	servers, upstreams := llms(t, 3)
	s, url := recipe(t, "vllm.yaml", upstreams)
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
			status, text := exchange(t, "POST", url+"/v1/chat/completions", body(chat, turn+1))
			require.Equal(t, 200, status, text)
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
	assert.Greater(t, float64(found)/float64(tokens), 0.6, "of a text of six turns, the last is new")

	admin := s.admin()
	type ranking struct {
		Project string
		Ranking []pool.Ranked
	}
	asked := func(body string) (pick ranking) {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/api/pick", strings.NewReader(body)))
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
			exchange(t, "POST", u.URL+"/v1/chat/completions", body(chat, 2))
		}
		exchange(t, "POST", url+"/v1/chat/completions", body(chat, 2))
	}
	assert.Greater(t, away(asked(body(100, 2))), before+0.1, "responses reported that other sidecars send chats to their first-ranked upstreams")
}

// A query goes to the upstream with most of the bytes of its tables, wherever the smaller
// tables are.
func TestRecipeQueries(t *testing.T) {
	var upstreams []*fakeupstream.Upstream
	for _, tables := range []string{`{"id":"sales","bytes":900000000}`, `{"id":"regions","bytes":2000},{"id":"days","bytes":9000}`, ``} {
		upstreams = append(upstreams, fakeupstream.New(t, fakeupstream.Options{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/tables" {
					fmt.Fprint(w, `{"projects":[`+tables+`]}`)
				}
			}),
			Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "queries_running 1\nqueries_queued 0\nquery_slots 8\nqueries_finished_total 3\n")
			}),
		}))
	}
	s, url := recipe(t, "queries.yaml", upstreams)
	require.Eventually(t, func() bool {
		return s.state(upstreams[0].Address()).Cached+s.state(upstreams[1].Address()).Cached == 3
	}, patience, time.Millisecond)
	for i, tables := range []string{`["regions","sales"]`, `["days"]`} {
		status, text := exchange(t, "POST", url+"/v1/queries", `{"tables":`+tables+`}`)
		require.Equal(t, 200, status, text)
		assert.True(t, slices.ContainsFunc(upstreams[i].Jobs(), func(j fakeupstream.Job) bool { return j.Path == "/v1/queries" }), tables)
	}
}

// results is a cache of results over HTTP, with metrics.
type results struct {
	mu     sync.Mutex
	stored map[string]string // by workspace/key
	load   atomic.Int64
}

func (c *results) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, isEntry := strings.CutPrefix(r.URL.Path, "/cache/")
	switch {
	case isEntry && r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		c.stored[key] = string(body)
		w.WriteHeader(http.StatusCreated)
	case isEntry && c.stored[key] != "":
		fmt.Fprint(w, c.stored[key])
	default:
		http.NotFound(w, r)
	}
}

func (c *results) metrics(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `# TYPE http_requests_in_flight gauge
http_requests_in_flight{handler="cache"} %d
http_requests_in_flight{handler="metrics"} 1
# TYPE go_sched_gomaxprocs_threads gauge
go_sched_gomaxprocs_threads 8
`, c.load.Load())
}

// A workspace's entries are found where they were stored, and the queries of its data set go to
// one server.
func TestRecipeCache(t *testing.T) {
	caches := map[string]*results{}
	var upstreams []*fakeupstream.Upstream
	for range 3 {
		c := &results{stored: map[string]string{}}
		u := fakeupstream.New(t, fakeupstream.Options{Handler: c, Metrics: http.HandlerFunc(c.metrics)})
		caches[u.Address()], upstreams = c, append(upstreams, u)
	}
	s, url := recipe(t, "cache.yaml", upstreams)
	const workspaces, keys = 9, 6
	for key := range keys {
		for workspace := range workspaces {
			at := fmt.Sprintf("%s/cache/ws-%d/%d", url, workspace, key)
			status, _ := exchange(t, "PUT", at, "not JSON: \x00{"+at)
			require.Equal(t, 201, status)
			status, text := exchange(t, "GET", at, "")
			assert.Equal(t, 200, status, "it is where it was put")
			assert.Equal(t, "not JSON: \x00{"+at, text)
		}
	}
	holders := map[string]int{}
	for _, c := range caches {
		c.mu.Lock()
		names := map[string]bool{}
		for key := range c.stored {
			name, _, _ := strings.Cut(key, "/")
			names[name] = true
		}
		for name := range names {
			holders[name]++
		}
		c.mu.Unlock()
	}
	require.Len(t, holders, workspaces)
	for name, n := range holders {
		assert.Equal(t, 1, n, "%s is on one server", name)
	}
	busy := upstreams[0].Address()
	caches[busy].load.Store(5)
	require.Eventually(t, func() bool { return s.state(busy).Running == 5 }, patience, time.Millisecond)
	assert.Equal(t, 8, s.state(busy).Cores)
	caches[busy].load.Store(0)
	require.Eventually(t, func() bool { return s.state(busy).Running == 0 }, patience, time.Millisecond)

	for _, u := range upstreams {
		u.Forget()
	}
	for range 8 {
		exchange(t, "POST", url+"/query", "select 1", "X-Dataset", "sales", "Content-Type", "text/plain")
	}
	asked := 0
	for _, u := range upstreams {
		if slices.ContainsFunc(u.Jobs(), func(j fakeupstream.Job) bool { return j.Path == "/query" }) {
			asked++
		}
	}
	assert.Equal(t, 1, asked, "queries of one data set go to one server")
}
