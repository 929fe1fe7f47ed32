package main

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/settings"
)

type flags struct {
	Listen     string          `default:"127.0.0.1:9001" placeholder:"ADDRESS" help:"Where to take jobs (${default})."`
	Feeds      string          `required:"" type:"existingdir" placeholder:"DIR" help:"Product data: one file PROJECT.csv for each project, its columns named in the first line."`
	Cores      int             `default:"4" help:"Joblets that run at the same time (${default})."`
	CacheBytes settings.Size   `default:"1GiB" placeholder:"SIZE" help:"Results kept in memory (${default}); the oldest make room."`
	Cost       ruleserver.Cost `placeholder:"COST" help:"How long joblets last at least, sleeping where their work is done sooner. Parts separated by commas: fetch, shared, operators and output, each =DURATION, which may go on with +DURATION/item and +DURATION/MiB of the feed; tail=SHAPE (over 1) multiplies all costs of a project by its own heavy-tailed factor of mean 1; seed=NUMBER chooses the factors. Example: fetch=2s+40ms/MiB,shared=400ms,operators=800ms,output=100ms,tail=1.5,seed=7"`
	TrustCost  bool            `help:"Let a job bring its own cost in the header X-Cost, in the form of --cost. For experiments: it may hold a core for as long as it says."`
	MaxBody    settings.Size   `default:"64MiB" placeholder:"SIZE" help:"Largest body of a job (${default})."`
	MaxFeed    settings.Size   `default:"256MiB" placeholder:"SIZE" help:"Largest feed, read or made (${default})."`
	MaxJobs    int             `default:"1000" help:"Jobs taken in at the same time (${default}); more get a 503."`
	Grace      time.Duration   `default:"30s" help:"How long jobs may go on after SIGTERM (${default})."`

	Consul          string        `placeholder:"HOST:PORT" help:"The Consul agent to register at, with what CONSUL_* variables say of tokens and TLS; without it, nowhere."`
	Service         string        `default:"ruleserver" placeholder:"NAME" help:"The service to register as (${default})."`
	CheckInterval   time.Duration `default:"1s" help:"Between Consul's health checks (${default})."`
	DeregisterAfter time.Duration `default:"1m" help:"How long they may fail before Consul forgets the server (${default}, which is the least)."`
	Preemptible     bool          `help:"Say that the server lives on borrowed time, and take a notice of its end: POST /v1/preempt, from this machine alone."`
	Lifetime        time.Duration `default:"24h" help:"How long a pre-emptible server lives at most (${default})."`
	Notice          time.Duration `default:"30s" help:"From the notice to the end (${default})."`

	LogLevel string `default:"info" enum:"debug,info,warn,error" help:"Least level that is logged: ${enum} (${default})."`
}

// Validate refuses times that make no sense.
func (f flags) Validate() error {
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"--grace", f.Grace}, {"--lifetime", f.Lifetime}, {"--notice", f.Notice},
	} {
		if d.value < 0 {
			return fmt.Errorf("%s: %v is negative", d.flag, d.value)
		}
	}
	return nil
}

func (f flags) config() ruleserver.Config {
	cache := int64(f.CacheBytes)
	if cache == 0 {
		cache = -1 // on the command line, nothing means nothing
	}
	return ruleserver.Config{
		Cores: f.Cores, CacheBytes: cache, Cost: f.Cost, TrustCost: f.TrustCost,
		MaxBody: int64(f.MaxBody), MaxFeed: int64(f.MaxFeed), MaxJobs: f.MaxJobs,
	}
}
