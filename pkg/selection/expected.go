package selection

import (
	"fmt"
	"math"
)

// Expected takes the upstream with the lowest cost, in seconds. The cost of
// running a job of project p at upstream u is
//
//	cost(u) = wait(u)                            until a core is free
//	        + price(p) (1 - warm(p, u))          to fetch what is not cached at u
//	        + 1.5 price(p) rank(p, u) crowd(u)   only where p is not cached at u
//	        + stop(u)                            what a stop of u would lose
//
//	wait(u)  = 1.5 (jobs ahead + 1) / rate(u)    if no core is free
//	         = (jobs / cores)⁴ / rate(u)         otherwise
//	price(p) = 0.5 fetch(p)^0.6 / (1 + open(p) / 2)
//	crowd(u) = max(1, 4.5 (jobs / cores)²)
//
// Wait: reports are seconds old, and other sidecars claim cores as well. So a
// wait counts 1.5 times, and a fifth of the cores counts as taken. Taking a
// free core has a price, too: the next jobs cannot have it.
//
// Price: data that was fetched serves later jobs as well, and more so the jobs
// of the project that are open now. So a fetch costs less than its time.
//
// Rank: the place of u in the rendezvous order of p, from 0 to 5. All sidecars
// have the same order, so they agree where a project goes that is cached
// nowhere. If they disagreed, several upstreams would fetch its data. That
// costs more at an upstream that is crowded already. An upstream that came up
// less than a minute ago ranks behind all others, for all but a growing share
// of the projects.
//
// Stop: the probability that the job lasts longer than u, times the work and
// the fetch to repeat.
//
// Unknown load: an upstream without a fresh report counts as loaded as the
// median of the others, and more if this sidecar has more jobs there than
// elsewhere. If fewer than half of the upstreams have one, Expected chooses as
// BoundedHash does with a factor of 1.3, but an upstream where the project is
// cached comes first.
//
// Figures of one upstream change its own cost alone. Others' costs depend on
// them only through medians, and only where the others' own load or rate is
// unknown.
//
// Costs of cached upstreams count as equal if reports of their age cannot tell
// them apart. Of these upstreams, Expected keeps those with the fewest of this
// sidecar's own jobs, which it knows exactly. It draws two of them and takes
// the cheaper one, so that not all sidecars take the same.
//
// The job's own length is ignored by default: it is equal on every upstream, and mostly
// too variable to predict. A job without a project counts as cached everywhere.
//
// Sources: Mooncake and llm-d (waits against fetches in seconds), Mitzenmacher
// and Dahlin (stale reports), Thaler and Ravishankar (rendezvous). Use it
// wherever upstreams report.
type Expected struct {
	c ExpectedConfig
}

var _ interface {
	Coster
	Local
} = (*Expected)(nil)

// NewExpected returns the policy, or an error that names the parameter that
// makes no sense.
func NewExpected(config ExpectedConfig) (*Expected, error) {
	if err := config.resolve(); err != nil {
		return nil, err
	}
	return &Expected{c: config}, nil
}

// ExpectedConfig holds the parameters of Expected; 0 means the default.
type ExpectedConfig struct {
	// WaitPrice is how many seconds of fetching one second of waiting is worth.
	// An old report makes a wait look shorter than it is. Default 1.5; at least 1.
	WaitPrice float64 `yaml:"wait_price"`
	// Spare is the share of an upstream's cores that count as taken by jobs
	// that others have sent there since its report. Default 0.2.
	Spare float64 `yaml:"spare"`
	// FetchScale and FetchPower make the price of a fetch from its time:
	// FetchScale times the time, in seconds, to the power of FetchPower.
	// Defaults 0.5 and 0.6.
	FetchScale float64 `yaml:"fetch_scale"`
	FetchPower float64 `yaml:"fetch_power"`
	// FetchShare is how much of that price each open job of the project takes
	// over. The price is divided by 1 + FetchShare times their number. Default 0.5.
	FetchShare float64 `yaml:"fetch_share"`
	// RankPrice is the price of each rank in the project's rendezvous order, in
	// prices of a fetch: the next sidecar may place the project elsewhere, and
	// fetch again. Default 1.5. All ranks from the fifth on cost the same.
	RankPrice float64 `yaml:"rank_price"`
	// Crowding is the factor on the price of a rank at an upstream with one job
	// per core; it grows with the square of the jobs per core, up to ten, and is
	// at least 1. Default 4.5.
	Crowding float64 `yaml:"crowding"`
	// WarmAt is the probability of the data being there from which on the
	// project counts as cached. Default 0.5.
	WarmAt float64 `yaml:"warm_at"`
	// Band is the difference in cost, in seconds, below which cached upstreams
	// count as equal even if their reports are fresh. Default 0.05.
	Band float64 `yaml:"band"`
	// BandWidth widens the band with the age of the reports. It is a number of
	// standard deviations of the jobs that may have come since. Default 1.
	BandWidth float64 `yaml:"band_width"`
	// SlowStart is for how many seconds after its start an upstream takes only a
	// growing share of the projects that are not cached there. Default 60.
	SlowStart float64 `yaml:"slow_start"`
	// TailScale and LongestJob describe how long jobs last, for the price of a
	// stop, in seconds. A job outlasts t with a probability of TailScale / t,
	// and none outlasts LongestJob. Defaults 1.6 and 7200: the thesis's percentiles.
	TailScale  float64 `yaml:"tail_scale"`
	LongestJob float64 `yaml:"longest_job"`
	// LengthPower makes waits dearer for the jobs of projects whose jobs are short, and
	// cheaper where they are long: WaitPrice is divided by Job.Length to this power, by 4
	// at most, and stays at least 1. Default 0, which ignores it.
	LengthPower float64 `yaml:"length_power"`
	// CoreRate is the jobs that a core completes in a second where no upstream's
	// rate is known. Default 1/12. As soon as one reports, it has no effect.
	CoreRate float64 `yaml:"core_rate"`
	// Off switches parts off.
	Off Part
}

// Part is a set of the separable parts of Expected, for ablation.
type Part uint16

// The parts.
const (
	// PartWaitPrice is the factor WaitPrice on a wait.
	PartWaitPrice Part = 1 << iota
	// PartSpare is the share Spare of the cores.
	PartSpare
	// PartShadow is the price of a free core, which grows as an upstream fills up.
	PartShadow
	// PartPlacement is the price of a rank in rendezvous order.
	PartPlacement
	// PartCrowding is the growth of that price with an upstream's load. Without
	// it, a pool that is behind falls further behind by fetching.
	PartCrowding
	// PartBand is the choice among cached upstreams that count as equal. Without
	// it the cheapest is taken.
	PartBand
	// PartStop is the price of a stop before the job's end.
	PartStop
	// PartSlowStart is the growing share of projects after a start.
	PartSlowStart
	// PartFetchPrice makes the price of a fetch less than its time.
	PartFetchPrice
	// PartShare divides it among the project's open jobs.
	PartShare

	allParts = 1<<iota - 1
)

// Parts lists every part on its own.
func Parts() []Part {
	var parts []Part
	for p := Part(1); p&allParts != 0; p <<= 1 {
		parts = append(parts, p)
	}
	return parts
}

// String names a single part.
func (p Part) String() string {
	for i, name := range [...]string{
		"wait-price", "spare", "shadow", "placement", "crowding", "band", "stop", "slow-start",
		"fetch-price", "share",
	} {
		if p == 1<<i {
			return name
		}
	}
	return fmt.Sprintf("parts %#x", uint16(p))
}

// resolve puts the defaults in and refuses nonsense.
func (c *ExpectedConfig) resolve() error {
	for _, f := range []struct {
		name     string
		value    *float64
		standard float64
	}{
		{"WaitPrice", &c.WaitPrice, 1.5},
		{"Spare", &c.Spare, 0.2},
		{"FetchScale", &c.FetchScale, 0.5},
		{"FetchPower", &c.FetchPower, 0.6},
		{"FetchShare", &c.FetchShare, 0.5},
		{"RankPrice", &c.RankPrice, 1.5},
		{"Crowding", &c.Crowding, 4.5},
		{"WarmAt", &c.WarmAt, 0.5},
		{"Band", &c.Band, 0.05},
		{"BandWidth", &c.BandWidth, 1},
		{"SlowStart", &c.SlowStart, 60},
		{"TailScale", &c.TailScale, 1.6},
		{"LongestJob", &c.LongestJob, 7200},
		{"LengthPower", &c.LengthPower, 0},
		{"CoreRate", &c.CoreRate, 1.0 / 12},
	} {
		if !(*f.value >= 0) || math.IsInf(*f.value, 0) {
			return fmt.Errorf("expected: %s is %v: want a finite number, 0 (for %v) or more",
				f.name, *f.value, f.standard)
		}
		if *f.value == 0 {
			*f.value = f.standard
		}
	}
	if c.WaitPrice < 1 {
		return fmt.Errorf("expected: WaitPrice is %v: want 1 or more: below 1, a full upstream could cost less than one with a free core", c.WaitPrice)
	}
	if c.Spare >= 1 {
		return fmt.Errorf("expected: Spare is %v: want a share of the cores below 1", c.Spare)
	}
	if c.WarmAt > 1 {
		return fmt.Errorf("expected: WarmAt is %v: want a probability, at most 1", c.WarmAt)
	}
	if c.Off&^allParts != 0 {
		return fmt.Errorf("expected: Off has the bits %#x, which are no part", uint16(c.Off&^allParts))
	}
	return nil
}
