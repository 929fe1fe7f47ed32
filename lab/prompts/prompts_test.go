package prompts

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// real returns the published trace up to a time in seconds.
func real(t *testing.T, until float64) []trace.Job {
	t.Helper()
	jobs, err := trace.Prompts("../../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	at := slices.IndexFunc(jobs, func(j trace.Job) bool { return j.Offset >= until })
	require.Positive(t, at, "the trace is shorter")
	return jobs[:at]
}

// named returns the rules with these names.
func named(names ...string) (some []*rule) {
	for _, name := range names {
		some = append(some, slices.DeleteFunc(rules(), func(r *rule) bool { return r.name != name })...)
	}
	return some
}

// A server reads one prompt after the other, except the cached blocks. It always reads the last token.
func TestServerReadsInOrder(t *testing.T) {
	results := play(config{
		jobs: []trace.Job{
			{Read: 1024, Write: 100, Blocks: []int64{0, 1}},
			{Read: 1024, Write: 100, Blocks: []int64{0, 1}},
			{Offset: 100, Read: 1500, Write: 1, Blocks: []int64{0, 1, 2}},
			{Offset: 200, Read: 1600, Write: 1, Blocks: []int64{0, 1, 2, 3}},
		},
		servers: 1, rate: 512, blocks: 10, routers: 1, rule: named("round-robin")[0],
	})
	want := []result{
		{first: 2.02, blocks: 2},
		{first: 2.02 + 1.02, found: 1, blocks: 2},
		{offset: 100, first: 0.02 + 476.0/512, found: 2, blocks: 3},
		{offset: 200, first: 0.02 + 576.0/512, found: 2, blocks: 4}, // the third block was incomplete before
	}
	require.Len(t, results, len(want))
	for i := range want {
		assert.InDelta(t, want[i].first, results[i].first, 1e-6, "%d", i)
		results[i].first = want[i].first
	}
	assert.Equal(t, want, results)
}

// A prefix outlives the blocks after it, and the most recently used blocks outlive the others.
func TestCacheForgetsTheEndsFirst(t *testing.T) {
	c := &cache{limit: 5}
	c.put([]int64{0, 1, 2})
	c.put([]int64{10, 11})
	c.put([]int64{20})
	assert.Equal(t, 2, c.match([]int64{0, 1, 2}))
	c.put([]int64{0, 1})
	c.put([]int64{30, 31})
	assert.Equal(t, []int{2, 0, 1, 2}, []int{c.match([]int64{0, 1, 2}), c.match([]int64{10, 11}), c.match([]int64{20}), c.match([]int64{30, 31})})
	assert.Equal(t, 5, c.n)
}

// Three servers: the first has the whole prompt and is busy, the second has half of it, and the third is idle.
func TestRulesOfOthers(t *testing.T) {
	prompt := &job{Job: &trace.Job{Read: 4 * 512, Blocks: []int64{0, 1, 2, 3}, Submitter: 9}}
	for rule, want := range map[string]int{
		"round-robin": 2, "least-requests": 2, "sglang": 0, "llm-d": 1, "llm-d approximate": 1, "dynamo": 1,
	} {
		w := &world{config: config{rule: named(rule)[0]}, now: time.Minute}
		for range 3 {
			w.servers = append(w.servers, &server{rate: 1, kept: &cache{limit: 100}})
		}
		r := w.newRival(1, 2)
		for i, n := range []int{4, 2, 0} {
			w.servers[i].kept.put(prompt.Blocks[:n])
			r.own[i].sent.put(prompt.Blocks[:n])
		}
		w.servers[0].waiting = make([]*job, 3)
		r.own[0].open, r.own[0].unread, r.own[0].active = 3, 3000, 12
		r.own[1].open = 1
		assert.Equal(t, want, r.pick(w, prompt), rule)
	}

	w := &world{config: config{rule: named("sglang")[0]}, servers: []*server{{kept: &cache{limit: 9}}, {kept: &cache{limit: 9}}}}
	r := w.newRival(1, 0)
	r.own[0].sent.put([]int64{0, 1, 8, 9, 10})
	assert.Equal(t, 1, r.pick(w, prompt), "half is not more than half: the smaller tree")
	r.own[0].sent.put(prompt.Blocks)
	r.own[1].sent = &cache{limit: 9}
	r.own[0].open, r.own[1].open = 33, 0
	assert.Equal(t, 1, r.pick(w, prompt), "the loads are uneven")
}

// Every rule serves all prompts, and equal seeds give equal results.
func TestEqualSeedsGiveEqualResults(t *testing.T) {
	jobs := real(t, 60)
	for _, rule := range rules() {
		cfg := config{jobs: jobs, servers: 4, rate: 8000, blocks: 500, routers: 3, rule: rule, spread: spread, seed: 7}
		once := play(cfg)
		require.Len(t, once, len(jobs), rule.name)
		assert.Equal(t, once, play(cfg), rule.name)
	}
}

// Chains and a single key find far more than no key does, and with chains the time to the first token is far shorter.
func TestChainsFindMore(t *testing.T) {
	c := Comparison{
		jobs: real(t, 900), from: 300, until: 900, blocks: []int{6000}, loads: []float64{0.7},
		routers: []int{1, 3}, rules: named("expected", "expected 2 blocks", "round-robin"), seeds: 1,
	}
	cells, err := c.cells(t.Context(), 6000, 0.7)
	require.NoError(t, err)
	for _, n := range c.routers {
		chains, key, none := cells[setting{n, c.rules[0]}], cells[setting{n, c.rules[1]}], cells[setting{n, c.rules[2]}]
		assert.Greater(t, chains.found, 1.3*none.found)
		assert.Greater(t, key.found, 1.3*none.found)
		assert.Less(t, mean(chains.mean), 0.8*mean(key.mean))
	}
	var out bytes.Buffer
	require.NoError(t, c.WriteText(t.Context(), &out))
	assert.Contains(t, out.String(), "6,000 blocks at each server, load 0.7")
	assert.Regexp(t, `expected / best in one process +0\.\d\d \[`, out.String())
}

// With events of the caches, sidecars find what other sidecars have sent. With missing events they do no worse than without events.
func TestEvents(t *testing.T) {
	c := Comparison{
		jobs: real(t, 900), from: 300, until: 900, routers: []int{3}, rules: named("expected", "expected, events", "llm-d"), seeds: 1,
	}
	missed := *c.rules[1]
	missed.name, missed.lost = "expected, one event of fifty lost", 0.02
	c.rules = append(c.rules, &missed)
	cells, err := c.cells(t.Context(), 6000, 0.9)
	require.NoError(t, err)
	cell := func(rule *rule) *cell { return cells[setting{3, rule}] }
	none, all, some, rival := cell(c.rules[0]), cell(c.rules[1]), cell(&missed), cell(c.rules[2])
	t.Log(mean(none.mean), mean(all.mean), mean(some.mean), mean(rival.mean), none.found, all.found, some.found)
	assert.Greater(t, all.found, 1.1*none.found)
	assert.Less(t, mean(all.mean), 0.95*mean(none.mean))
	assert.Less(t, mean(all.mean), 0.9*mean(rival.mean))
	assert.Less(t, mean(some.mean), 1.03*mean(none.mean))
}

// Without reports, one router finds nearly as much as a single server would, whatever the addresses. Prompts wait no longer than with
// reports, because the router knows what it sent.
func TestWithoutReports(t *testing.T) {
	quiet := config{jobs: real(t, 150), servers: 4, rate: 1e9, blocks: 3000, routers: 1, rule: named("expected, no reports")[0], spread: spread}
	found := func(results []result) (n int) {
		for _, r := range results {
			n += r.found
		}
		return n
	}
	all := found(playWithoutWait(quiet))
	for quiet.seed = range uint64(50) { // addresses differ by seed
		assert.Greater(t, found(play(quiet)), all*9/10, "seed %d", quiet.seed)
	}
	c := Comparison{jobs: real(t, 900), from: 300, until: 900, routers: []int{1}, rules: named("expected", "expected, no reports"), seeds: 1}
	cells, err := c.cells(t.Context(), 2000, 0.8)
	require.NoError(t, err)
	with, without := cells[setting{1, c.rules[0]}], cells[setting{1, c.rules[1]}]
	t.Log(mean(without.mean), mean(with.mean))
	assert.Less(t, mean(without.mean), 1.1*mean(with.mean))
}

// Turns of generated chats extend the turns before, and the bounds are below every rule.
func TestInventedChats(t *testing.T) {
	jobs := Invent(3)
	assert.Equal(t, jobs, Invent(3))
	assert.NotEqual(t, jobs, Invent(4))
	turns, goOn := map[int64][]int64{}, 0
	for i, j := range jobs {
		require.True(t, i == 0 || j.Offset >= jobs[i-1].Offset)
		require.Len(t, j.Blocks, int(j.Read/trace.BlockTokens))
		if before, ok := turns[j.Submitter]; ok {
			require.Equal(t, before, j.Blocks[:len(before)])
			goOn++
		}
		turns[j.Submitter] = j.Blocks
	}
	assert.Greater(t, goOn, len(jobs)/2)
	c := Comparison{jobs: jobs, from: 600, until: 3600, routers: []int{2}, rules: named("expected", "llm-d approximate", "dynamo"), seeds: 1}
	cells, err := c.cells(t.Context(), 2000, 0.8)
	require.NoError(t, err)
	bound, known := cells[setting{2, noWait}], cells[setting{2, allKnown}]
	for _, rule := range c.rules {
		one := cells[setting{2, rule}]
		assert.Less(t, mean(bound.mean), mean(known.mean), rule.name)
		assert.Less(t, mean(known.mean), mean(one.mean), rule.name)
		assert.LessOrEqual(t, one.found, bound.found, rule.name)
	}
}
