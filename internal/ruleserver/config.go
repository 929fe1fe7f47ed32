package ruleserver

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// Config is what a server is made of. The zero value of each field but Feeds
// takes the default that it names.
type Config struct {
	Cores      int   // joblets that run at the same time; 4
	CacheBytes int64 // results kept, in bytes of memory; 1 GiB; negative keeps none

	// Feeds holds a file PROJECT.csv for each project. Its modification time
	// and size are the data's version: a file that changes voids what is cached.
	Feeds fs.FS

	MaxFeed int64 // bytes of a feed's file, and of any feed that rules make of it; 256 MiB
	MaxBody int64 // bytes of a request's body; 64 MiB
	MaxJobs int   // jobs and prefetches taken in at the same time; 1000

	// Timeouts hold for jobs that give none of their own: 240 s in the queue,
	// 30 min of evaluation and 1 h of streaming.
	Timeouts rules.Timeouts
	// BodyIdle bounds the time without a byte of a request's body; 30 s.
	BodyIdle time.Duration

	Cost Cost // how long joblets last; nothing beyond their work
	// TrustCost lets a job or prefetch bring its own cost, in the header
	// CostHeader, which stands in for Cost. It is for experiments: a cost may
	// hold a core for as long as it says.
	TrustCost bool

	// OnJob, when set, is called with the record of each job and prefetch after
	// its end, concurrently.
	OnJob func(Record)
	// AdjustLoad, when set, may change what the server says of its load, in
	// metrics and hints alike. It is for fakes.
	AdjustLoad func(*executor.Load)
}

// withDefaults fills what is zero and refuses nonsense.
func (c Config) withDefaults() (Config, error) {
	if c.Feeds == nil {
		return c, errors.New("no feeds are given")
	}
	c.Cores = cmp.Or(c.Cores, 4)
	c.CacheBytes = max(cmp.Or(c.CacheBytes, 1<<30), 0)
	c.MaxFeed = cmp.Or(c.MaxFeed, 256<<20)
	c.MaxBody = cmp.Or(c.MaxBody, 64<<20)
	c.MaxJobs = cmp.Or(c.MaxJobs, 1000)
	c.Timeouts = c.Timeouts.Or(rules.Timeouts{Queue: 240 * time.Second, Evaluate: 30 * time.Minute, Stream: time.Hour})
	c.BodyIdle = cmp.Or(c.BodyIdle, 30*time.Second)
	for _, bound := range []struct {
		name  string
		value int64
	}{
		{"the greatest feed", c.MaxFeed},
		{"the greatest body", c.MaxBody},
		{"the number of jobs", int64(c.MaxJobs)},
		{"the queue timeout", int64(c.Timeouts.Queue)},
		{"the evaluate timeout", int64(c.Timeouts.Evaluate)},
		{"the stream timeout", int64(c.Timeouts.Stream)},
		{"the idle time of a body", int64(c.BodyIdle)},
	} {
		if bound.value < 0 {
			return c, fmt.Errorf("%s must not be negative", bound.name)
		}
	}
	return c, nil
}
