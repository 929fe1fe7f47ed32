package prompts

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// real is the first minutes of the trace, until an instant in seconds.
func real(t *testing.T, until float64) Jobs {
	t.Helper()
	requests, err := trace.Prompts("../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	jobs := Read(requests[:4000])
	for i := range jobs {
		if jobs[i].Offset >= until {
			return jobs[:i]
		}
	}
	t.Fatal("the trace is shorter")
	return nil
}

func TestReadFindsChats(t *testing.T) {
	jobs := Read([]trace.Job{
		{Read: 1500, Blocks: []int64{70, 71, 72}},
		{Read: 600, Blocks: []int64{70, 80}},
		{Read: 2100, Write: 5, Blocks: []int64{70, 71, 91, 92, 93}},
	})
	assert.Equal(t, Jobs{
		{Read: 1500, Blocks: []int64{0, 1, 2}, Session: 1},
		{Read: 600, Blocks: []int64{0, 3}, Session: 2},
		{Read: 2100, Write: 5, Blocks: []int64{0, 1, 4, 5, 6}, Session: 1},
	}, jobs)
}

// A server reads one prompt after the other, without the full blocks that it has. It reads the last token in any case.
func TestServerReadsInOrder(t *testing.T) {
	results, err := Play(Config{
		Jobs: Jobs{
			{Read: 1024, Write: 100, Blocks: []int64{0, 1}},
			{Read: 1024, Write: 100, Blocks: []int64{0, 1}},
			{Offset: 100, Read: 1500, Write: 1, Blocks: []int64{0, 1, 2}},
			{Offset: 200, Read: 1600, Write: 1, Blocks: []int64{0, 1, 2, 3}},
		},
		Servers: 1, Rate: 512, Blocks: 10, Routers: 1, Rule: "round-robin",
	})
	require.NoError(t, err)
	want := []Result{
		{First: 2.02, Blocks: 2},
		{First: 2.02 + 1.02, Found: 1, Blocks: 2},
		{Offset: 100, First: 0.02 + 476.0/512, Found: 2, Blocks: 3},
		{Offset: 200, First: 0.02 + 576.0/512, Found: 2, Blocks: 4}, // the third block was not full before
	}
	require.Len(t, results, len(want))
	for i := range want {
		assert.InDelta(t, want[i].First, results[i].First, 1e-6, "%d", i)
		results[i].First = want[i].First
	}
	assert.Equal(t, want, results)
}

// A beginning outlives what follows it, and what was used last outlives the rest.
func TestCacheForgetsTheEndsFirst(t *testing.T) {
	c := newCache(5)
	c.put([]int64{0, 1, 2})
	c.put([]int64{10, 11})
	c.put([]int64{20})
	assert.Equal(t, 2, c.match([]int64{0, 1, 2}))
	c.put([]int64{0, 1})
	c.put([]int64{30, 31})
	assert.Equal(t, []int{2, 0, 1, 2}, []int{c.match([]int64{0, 1, 2}), c.match([]int64{10, 11}), c.match([]int64{20}), c.match([]int64{30, 31})})
	assert.Equal(t, 5, c.n)
}

// Three servers: the first has the prompt, and is busy; the second has half of it; the third has nothing to do.
func TestRulesOfOthers(t *testing.T) {
	prompt := &job{Job: Job{Read: 4 * 512, Blocks: []int64{0, 1, 2, 3}, Session: 9}}
	for rule, want := range map[string]int{
		"round-robin": 2, "least-requests": 2, "sglang": 0, "llm-d": 1, "llm-d approximate": 1, "dynamo": 1,
	} {
		w := &world{now: time.Minute}
		for range 3 {
			w.servers = append(w.servers, &server{rate: 1, kept: newCache(100)})
		}
		r := w.rival(rules[rule], 1, 2)
		for i, n := range []int{4, 2, 0} {
			w.servers[i].kept.put(prompt.Blocks[:n])
			r.own[i].sent.put(prompt.Blocks[:n])
		}
		w.servers[0].waiting = make([]*job, 3)
		r.own[0].open, r.own[0].unread, r.own[0].active = 3, 3000, 12
		r.own[1].open = 1
		at, err := r.pick(w, prompt)
		require.NoError(t, err)
		assert.Equal(t, want, at, rule)
	}

	w := &world{servers: []*server{{kept: newCache(9)}, {kept: newCache(9)}}}
	r := w.rival(sglang, 1, 0)
	r.own[0].sent.put([]int64{0, 1, 8, 9, 10})
	at, _ := r.pick(w, prompt)
	assert.Equal(t, 1, at, "half is not more than half: the smaller tree")
	r.own[0].sent.put(prompt.Blocks)
	r.own[1].sent = newCache(9)
	r.own[0].open, r.own[1].open = 33, 0
	at, _ = r.pick(w, prompt)
	assert.Equal(t, 1, at, "the loads are uneven")
}

// Every rule serves all prompts, and equal seeds give equal results.
func TestEqualSeedsGiveEqualResults(t *testing.T) {
	jobs := real(t, 60)
	for _, rule := range Rules() {
		cfg := Config{Jobs: jobs, Servers: 4, Rate: 8000, Blocks: 500, Routers: 3, Rule: rule, Spread: 3 * time.Second, Seed: 7}
		once, err := Play(cfg)
		require.NoError(t, err, rule)
		again, err := Play(cfg)
		require.NoError(t, err, rule)
		require.Len(t, once, len(jobs), rule)
		assert.Equal(t, once, again, rule)
	}
	_, err := Play(Config{Jobs: jobs, Servers: 1, Rate: 1, Blocks: 1, Routers: 1, Rule: "best"})
	assert.ErrorContains(t, err, `unknown rule "best": want one of expected, `)
}

// Chains find more than one key, and the wait for the first token is far shorter.
func TestChainsFindMore(t *testing.T) {
	c := Comparison{
		Jobs: real(t, 900), From: 300, Until: 900, Servers: 8, Blocks: []int{6000}, Loads: []float64{0.7},
		Routers: []int{1, 3}, Rules: []string{"expected", "expected 2 blocks", "round-robin"}, Spread: 3 * time.Second, Seeds: 1,
	}
	for _, routers := range c.Routers {
		var cells []*cell
		for _, rule := range c.Rules {
			one, err := c.cell(setting{6000, 0.7, routers, rule})
			require.NoError(t, err)
			cells = append(cells, one)
		}
		assert.Greater(t, cells[0].found, cells[1].found)
		assert.Greater(t, cells[1].found, 1.3*cells[2].found)
		assert.Less(t, mean(cells[0].mean), 0.8*mean(cells[1].mean))
	}
	var out bytes.Buffer
	require.NoError(t, c.WriteText(t.Context(), &out, 2))
	assert.Contains(t, out.String(), "6,000 blocks at each server, load 0.7")
	assert.Regexp(t, `expected / best in one process +0\.\d\d \[`, out.String())
}

// Invented chats go on where they were, and a bound is below every rule.
func TestInventedChats(t *testing.T) {
	jobs := Invent(3)
	assert.Equal(t, jobs, Invent(3))
	assert.NotEqual(t, jobs, Invent(4))
	turns, goOn := map[uint64][]int64{}, 0
	for i, j := range jobs {
		require.True(t, i == 0 || j.Offset >= jobs[i-1].Offset)
		require.Len(t, j.Blocks, int(j.Read/trace.BlockTokens))
		if before, ok := turns[j.Session]; ok {
			require.Equal(t, before, j.Blocks[:len(before)])
			goOn++
		}
		turns[j.Session] = j.Blocks
	}
	assert.Greater(t, goOn, len(jobs)/2)
	c := Comparison{
		Jobs: jobs, From: 600, Until: 3600, Servers: 8, Blocks: []int{2000}, Loads: []float64{0.8}, Routers: []int{2},
		Rules: []string{"expected", "llm-d approximate", "dynamo"}, Seeds: 1,
	}
	bound, err := c.cell(setting{2000, 0.8, 2, noWait})
	require.NoError(t, err)
	for _, rule := range c.Rules {
		one, err := c.cell(setting{2000, 0.8, 2, rule})
		require.NoError(t, err)
		assert.Less(t, mean(bound.mean), mean(one.mean), rule)
		assert.LessOrEqual(t, one.found, bound.found, rule)
	}
}
