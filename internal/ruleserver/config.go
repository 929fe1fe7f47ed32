package ruleserver

import (
	"io/fs"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/settings"
)

// Settings are what a person sets. The tags make them flags of cmd/ruleserver,
// which also takes the defaults from Defaults.
type Settings struct {
	Cores      int           `placeholder:"N" help:"Joblets that run at the same time."`
	CacheBytes settings.Size `placeholder:"SIZE" help:"Memory for results; the oldest results make room. 0 keeps none."`
	Cost       Cost          `placeholder:"COST" help:"Least duration of joblets: a joblet sleeps on its core until it is over. Parts separated by commas: fetch, shared, operators and output, each =DURATION and then, if wanted, +DURATION/item and +DURATION/MiB of the feed; tail=SHAPE (more than 1) multiplies the costs of each project by a heavy-tailed factor of its own with the mean 1; seed=NUMBER chooses these factors. Example: fetch=2s+40ms/MiB,shared=400ms,operators=800ms,output=100ms,tail=1.5,seed=7"`
	TrustCost  bool          `help:"Let a job bring its own cost in the header X-Cost, in the form of --cost. For experiments only: such a job can hold a core for as long as it likes."`
	MaxBody    settings.Size `placeholder:"SIZE" help:"Largest body of a job."`
	MaxFeed    settings.Size `placeholder:"SIZE" help:"Largest feed that is read or computed."`
	MaxJobs    int           `placeholder:"N" help:"Jobs and prefetches taken in at the same time. More get a 503."`

	AnnounceStart bool `help:"Send 102 Processing with Job-Started: yes to every submitter when its job begins to execute. A request can also ask for that: Prefer: job-started."`

	ORCA        string `name:"orca" placeholder:"FORMAT" help:"Send an ORCA load report with each response: text, json, bin or off. A request can also ask for one: Endpoint-Load-Metrics-Format: FORMAT."`
	ORCATrailer bool   `name:"orca-trailer" help:"Send the ORCA report in the trailer instead of the header, where the response has a body of data. A request can also ask for that: TE: trailers."`

	Faults bool `help:"For tests only: let programs on this machine make the server misbehave, with PUT /v1/fault. docs/upstreams.md lists the modes."`
}

// Defaults are the settings of a server where nobody sets any.
func Defaults() Settings {
	return Settings{
		Cores:      4,
		CacheBytes: 1 << 30,
		MaxBody:    64 << 20,
		MaxFeed:    256 << 20,
		MaxJobs:    1000,
		ORCA:       orcaOff,
	}
}

// Check adds the faults of the settings to f.
func (s Settings) Check(f *settings.Faults) {
	f.Within("cores", s.Cores, 1, executor.MaxCores)
	f.AtLeast("cache_bytes", int64(s.CacheBytes), 0)
	f.AtLeast("max_body", int64(s.MaxBody), 1)
	f.AtLeast("max_feed", int64(s.MaxFeed), 1)
	f.AtLeast("max_jobs", int64(s.MaxJobs), 1)
	f.OneOf("orca", s.ORCA, orcaFormats())
}

// Config is what New needs.
type Config struct {
	Settings Settings

	// Feeds has a file PROJECT.csv for each project. The modification time and the
	// size of a file are the version of its data: when they change, what is cached
	// of the project is fetched again.
	Feeds fs.FS

	// OnJob is called with the record of each job and prefetch after its end, from
	// several goroutines. It may be nil.
	OnJob func(Record)
	// AdjustLoad may change the load that the server reports, in metrics and hints
	// alike. It is for fakes, and may be nil.
	AdjustLoad func(*executor.Load)
}
