package ruleserver

import "example.org/pilotfish/internal/settings"

// Settings are the flags of cmd/ruleserver, by their tags. Their defaults are those of
// Defaults.
type Settings struct {
	Cores      int           `placeholder:"N" help:"Number of joblets that run at the same time."`
	CacheBytes settings.Size `placeholder:"SIZE" help:"Memory for cached results; the oldest are evicted. 0 disables the cache."`
	Cost       Cost          `placeholder:"COST" help:"Minimum duration of joblets: a joblet sleeps on its core until then. Parts separated by commas: fetch, shared, operators and output, each =DURATION. Example: fetch=2s,shared=400ms,operators=800ms,output=100ms"`
	TrustCost  bool          `help:"Accept a job's own cost in the header X-Cost, in the format of --cost. For experiments only: such a job can hold a core for any time."`
	MaxBody    settings.Size `placeholder:"SIZE" help:"Maximum size of a job's body."`
	MaxFeed    settings.Size `placeholder:"SIZE" help:"Maximum size of a feed or result."`
	MaxJobs    int           `placeholder:"N" help:"Maximum number of open jobs. Further jobs get a 503."`
	Order      string        `placeholder:"ORDER" help:"Order of waiting jobs of equal priority: expected (shortest expected duration first, learned from earlier jobs and the header Job-Expected), header (by the header only; jobs without it by arrival), or arrival."`

	Faults bool `help:"For tests only: allow programs to inject faults with PUT /v1/fault. lab/README.md lists the modes."`
}

// The orders of jobs of equal priority. The thesis (3.4) uses arrival.
const (
	OrderExpected = "expected"
	OrderHeader   = "header"
	OrderArrival  = "arrival"
)

// Defaults returns the default settings.
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
