package ruleserver

import "example.org/pilotfish/internal/settings"

// Settings are what a person sets. The tags make them flags of cmd/ruleserver,
// which also takes the defaults from Defaults.
type Settings struct {
	Cores      int           `placeholder:"N" help:"Joblets that run at the same time."`
	CacheBytes settings.Size `placeholder:"SIZE" help:"Memory for results; the oldest results make room. 0 keeps none."`
	Cost       Cost          `placeholder:"COST" help:"Least duration of joblets: a joblet sleeps on its core until it is over. Parts separated by commas: fetch, shared, operators and output, each =DURATION. Example: fetch=2s,shared=400ms,operators=800ms,output=100ms"`
	TrustCost  bool          `help:"Let a job bring its own cost in the header X-Cost, in the form of --cost. For experiments only: such a job can hold a core for as long as it likes."`
	MaxBody    settings.Size `placeholder:"SIZE" help:"Largest body of a job."`
	MaxFeed    settings.Size `placeholder:"SIZE" help:"Largest feed that is read or computed."`
	MaxJobs    int           `placeholder:"N" help:"Maximum number of open jobs. Further ones get a 503."`
	Order      string        `placeholder:"ORDER" help:"Which of the waiting jobs of equal priority goes first: expected (the one that is expected to be short, learned from jobs that ended and from the header Job-Expected), header (the same, by the header alone; jobs without it go by their arrival), or arrival."`

	Faults bool `help:"For tests only: let programs make the server misbehave, with PUT /v1/fault. lab/README.md lists the modes."`
}

// The orders of jobs of equal priority. The thesis's (3.4) is that of arrival.
const (
	OrderExpected = "expected"
	OrderHeader   = "header"
	OrderArrival  = "arrival"
)

// Defaults are the settings of a server where nobody sets any.
func Defaults() Settings {
	return Settings{Cores: 4, CacheBytes: 1 << 30, MaxBody: 64 << 20, MaxFeed: 256 << 20, MaxJobs: 1000, Order: OrderExpected}
}

// Check adds the faults of the settings to f.
func (s Settings) Check(f *settings.Faults) {
	f.Within("cores", s.Cores, 1, 4096)
	f.AtLeast("cache_bytes", int64(s.CacheBytes), 0)
	f.AtLeast("max_body", int64(s.MaxBody), 1)
	f.AtLeast("max_feed", int64(s.MaxFeed), 1)
	f.AtLeast("max_jobs", int64(s.MaxJobs), 1)
	f.OneOf("order", s.Order, []string{OrderExpected, OrderHeader, OrderArrival})
}
