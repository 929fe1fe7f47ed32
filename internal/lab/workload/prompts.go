package workload

import (
	"math"
	"math/rand/v2"
	"strconv"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// PromptsConfig shapes the pattern prompts: people talk with servers of a language
// model. Each session begins with the system prompt of one application, which many
// sessions share, and grows with each turn. A project is a system prompt; its data
// is what a server keeps of having read it.
//
// A server that has had a session's turn keeps the session, which takes half of the
// memory of its system prompt. Another one must read all that was said so far.
type PromptsConfig struct {
	// System is the median length of a system prompt in tokens, MaxSystem the
	// largest. Zipf is the exponent of their popularity.
	System       float64 `yaml:"system"`
	SystemSpread float64 `yaml:"system_spread"`
	MaxSystem    float64 `yaml:"max_system"`
	Zipf         float64 `yaml:"zipf"`
	// Turns is the median number of a session's turns, MaxTurns the largest.
	Turns       float64 `yaml:"turns"`
	TurnsSpread float64 `yaml:"turns_spread"`
	MaxTurns    int     `yaml:"max_turns"`
	// Think is the median time from an answer to the next question, in seconds.
	Think       float64 `yaml:"think"`
	ThinkSpread float64 `yaml:"think_spread"`
	// Question and Answer are the median lengths of a turn's texts in tokens, and
	// MaxText the largest.
	Question   float64 `yaml:"question"`
	Answer     float64 `yaml:"answer"`
	TextSpread float64 `yaml:"text_spread"`
	MaxText    float64 `yaml:"max_text"`
	// Read is how many tokens of a prompt a server reads in a second, and Write how
	// many it writes for one job, while it has no other.
	Read  float64 `yaml:"read"`
	Write float64 `yaml:"write"`
	// TokenBytes is what a token takes in a server's memory.
	TokenBytes float64 `yaml:"token_bytes"`
}

// defaultPrompts is a model of eight thousand million parameters on one processor
// each. All of it is assumed.
func defaultPrompts() PromptsConfig {
	return PromptsConfig{
		System: 2000, SystemSpread: 1, MaxSystem: 30_000, Zipf: 0.9,
		Turns: 4, TurnsSpread: 0.8, MaxTurns: 60,
		Think: 20, ThinkSpread: 1,
		Question: 60, Answer: 200, TextSpread: 1, MaxText: 4000,
		Read: 8000, Write: 50,
		TokenBytes: 128 << 10,
	}
}

func (c *PromptsConfig) check(f *settings.Faults) {
	const large = 1e9
	f.Between("system", c.System, 1, large)
	f.Between("system_spread", c.SystemSpread, 0, 5)
	f.Between("max_system", c.MaxSystem, 1, large)
	f.Between("zipf", c.Zipf, 0, 3)
	f.Between("turns", c.Turns, 1, 1e6)
	f.Between("turns_spread", c.TurnsSpread, 0, 5)
	f.Between("max_turns", float64(c.MaxTurns), 1, 1e6)
	f.Between("think", c.Think, 0, day)
	f.Between("think_spread", c.ThinkSpread, 0, 5)
	f.Between("question", c.Question, 1, large)
	f.Between("answer", c.Answer, 1, large)
	f.Between("text_spread", c.TextSpread, 0, 5)
	f.Between("max_text", c.MaxText, 1, large)
	f.Between("read", c.Read, 1, large)
	f.Between("write", c.Write, 1, large)
	f.Between("token_bytes", c.TokenBytes, 1, large)
}

// project draws the system prompt of a rank, counted from 0.
func (c *PromptsConfig) project(rng *rand.Rand, rank int) projectModel {
	tokens := min(logNormal(rng, c.System, c.SystemSpread), c.MaxSystem)
	return projectModel{
		ID:         trace.Project(strconv.Itoa(firstID + rank)),
		Bytes:      int64(tokens * c.TokenBytes),
		Load:       rounded(tokens / c.Read),
		Popularity: math.Pow(float64(rank+1), -c.Zipf),
		Period:     day,
		Channels:   []channelModel{{Operators: c.Question / c.Read, Output: c.Answer / c.Write}},
		view:       c.Answer / c.Write,
	}
}

func (c *PromptsConfig) turns(rng *rand.Rand) int {
	return min(max(1, int(logNormal(rng, c.Turns, c.TurnsSpread))), c.MaxTurns)
}

// text draws the length of a text in tokens.
func (c *PromptsConfig) text(rng *rand.Rand, median float64) float64 {
	return min(logNormal(rng, median, c.TextSpread), c.MaxText)
}

func (g *Generator) beginPrompts() error {
	c := &g.cfg.Prompts
	rng := rand.New(source(g.cfg.Seed, streamPrompts, 0))
	for rank := range g.cfg.projects() {
		g.population = append(g.population, c.project(rng, rank))
	}
	sizes := func() *rand.Rand { return rand.New(source(g.cfg.Seed, streamPrompts, 1)) }
	sessions := 0
	for rng, left := sizes(), g.cfg.Jobs; left > 0; sessions++ {
		left -= c.turns(rng)
	}
	p := &people{
		times: instants{rng: rand.New(source(g.cfg.Seed, streamArrivals, 0)), left: sessions},
		sizes: sizes(), rng: rand.New(source(g.cfg.Seed, streamPrompts, 2)), jobs: g.cfg.Jobs,
	}
	g.queue.push(p.next(&g.cfg), p)
	return nil
}

// people begin sessions until they have made all jobs.
type people struct {
	times      instants
	sizes, rng *rand.Rand
	jobs       int // that are left for the sessions to come
	sessions   int
}

// next is when the next session begins; never if there are enough.
func (p *people) next(cfg *Config) float64 {
	share, ok := p.times.next()
	if !ok {
		return never
	}
	return share * cfg.Duration
}

func (p *people) run(g *Generator, at float64, _ *trace.Job) (bool, float64) {
	p.sessions++
	c := &chat{
		rng: p.rng, name: "c" + strconv.Itoa(p.sessions), project: g.popular.pick(p.rng),
		left: min(g.cfg.Prompts.turns(p.sizes), p.jobs), high: p.rng.Float64() < g.cfg.HighShare,
		submitter: 1 + p.rng.Int64N(int64(g.cfg.Submitters)),
	}
	p.jobs -= c.left
	g.queue.push(at, c)
	return false, p.next(&g.cfg)
}

// chat is one session.
type chat struct {
	rng       *rand.Rand
	name      string
	project   int
	left      int // turns
	high      bool
	submitter int64
	said      float64 // so far, in tokens
	line      trace.Line
}

func (c *chat) run(g *Generator, at float64, job *trace.Job) (bool, float64) {
	cfg := &g.cfg.Prompts
	question, answer := cfg.text(c.rng, cfg.Question), cfg.text(c.rng, cfg.Answer)
	g.fill(job, c.project, c.rng)
	job.Submitter, job.Channel, job.After = c.submitter, 1, c.line
	job.Priority, job.Timeouts = selection.Low, g.cfg.LowTimeouts
	if c.high {
		job.Priority, job.Timeouts = selection.High, g.cfg.HighTimeouts
	}
	c.said += question
	job.Shared, job.SharedRules = c.name, rounded(c.said/cfg.Read)
	job.Operators, job.Output = rounded(question/cfg.Read), rounded(answer/cfg.Write)
	c.said += answer
	c.line = g.line()
	if c.left--; c.left == 0 {
		return true, never
	}
	gap := answer/cfg.Write + logNormal(c.rng, cfg.Think, cfg.ThinkSpread)
	// A session that would last longer than the workload gets shorter gaps.
	return true, at + min(gap, (g.cfg.Duration-at)/float64(c.left+1))
}
