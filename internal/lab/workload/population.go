package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/trace"
)

// firstID is the smallest project identifier.
const firstID = 10_001

// PopulationConfig shapes the projects. Spreads are standard deviations of
// logarithms.
type PopulationConfig struct {
	// MaxProjects bounds the population, and so its memory.
	MaxProjects int `yaml:"max_projects"`
	// Bytes is the median size of a project's data, MaxBytes the largest size.
	Bytes       float64 `yaml:"bytes"`
	BytesSpread float64 `yaml:"bytes_spread"`
	MaxBytes    float64 `yaml:"max_bytes"`
	// FetchRate is how many bytes one core-second fetches. FetchSpread is how
	// much the rates of projects differ.
	FetchRate   float64 `yaml:"fetch_rate"`
	FetchSpread float64 `yaml:"fetch_spread"`

	// Channels is the median number of a project's export channels, MaxChannels
	// the largest number.
	Channels       float64 `yaml:"channels"`
	ChannelsSpread float64 `yaml:"channels_spread"`
	MaxChannels    int     `yaml:"max_channels"`
	// ChannelsBySize is how the logarithms of a project's channels and of its
	// size correlate.
	ChannelsBySize float64 `yaml:"channels_by_size"`
	// SharedSets is the largest number of sets of shared rules that a project
	// has; one in SharedSets+1 projects has none.
	SharedSets int `yaml:"shared_sets"`
	// Shared is the work of a set as a share of a channel's work.
	Shared float64 `yaml:"shared"`

	// Work is the median work of a channel's operators and output in a project
	// of median size, in core-seconds. It grows in proportion with the size, up
	// to MaxWork.
	Work       float64 `yaml:"work"`
	WorkSpread float64 `yaml:"work_spread"`
	MaxWork    float64 `yaml:"max_work"`
	// WorkTail is the index of a Pareto distribution that takes the place of the
	// log-normal one with WorkSpread; 0 keeps that one.
	WorkTail float64 `yaml:"work_tail"`
	// OutputShare is the output's share of the work.
	OutputShare float64 `yaml:"output_share"`
	// View is the median work of a high job in a project of median size, in
	// core-seconds. It grows with the size to the power ViewBySize: a page shows
	// no more of a large feed than of a small one.
	View       float64 `yaml:"view"`
	ViewBySize float64 `yaml:"view_by_size"`

	// MaxDemand is how many cores one project may keep busy on average. Nobody
	// exports a huge feed to hundreds of channels every quarter of an hour: such
	// a project runs less often, and then to fewer channels.
	MaxDemand float64 `yaml:"max_demand"`
	// PopularitySpread is how much more people work on some projects than on
	// others.
	PopularitySpread float64 `yaml:"popularity_spread"`
	// PopularityBySize is how the logarithms of a project's popularity and of its
	// size correlate.
	PopularityBySize float64 `yaml:"popularity_by_size"`
}

// defaultPopulation is calibrated on the production rows of the thesis's tables
// 4 and 5, with 14 upstreams of 16 cores. Sizes go from hundreds of items to
// millions.
func defaultPopulation() PopulationConfig {
	return PopulationConfig{
		MaxProjects:      1_000_000,
		Bytes:            4e6,
		BytesSpread:      2,
		MaxBytes:         8e9,
		FetchRate:        25e6,
		FetchSpread:      0.4,
		Channels:         3,
		ChannelsSpread:   1.2,
		MaxChannels:      400,
		ChannelsBySize:   0.3,
		SharedSets:       3,
		Shared:           0.5,
		Work:             0.07,
		WorkSpread:       1.5,
		MaxWork:          1800,
		OutputShare:      0.2,
		View:             0.18,
		ViewBySize:       0.85,
		MaxDemand:        4,
		PopularitySpread: 1.5,
	}
}

func (c *PopulationConfig) check(f *settings.Faults) {
	const large = 1e12
	f.Between("max_projects", float64(c.MaxProjects), 1, 1e8)
	f.Between("bytes", c.Bytes, 1, large)
	f.Between("bytes_spread", c.BytesSpread, 0, 5)
	f.Between("max_bytes", c.MaxBytes, 1, large)
	f.Between("fetch_rate", c.FetchRate, 1, large)
	f.Between("fetch_spread", c.FetchSpread, 0, 5)
	f.Between("channels", c.Channels, 1, large)
	f.Between("channels_spread", c.ChannelsSpread, 0, 5)
	f.Between("channels_by_size", c.ChannelsBySize, -1, 1)
	f.Between("max_channels", float64(c.MaxChannels), 1, 1e5)
	f.Between("shared_sets", float64(c.SharedSets), 1, 1000)
	f.Between("shared", c.Shared, 0, large)
	f.Between("work", c.Work, 0, large)
	f.Between("work_spread", c.WorkSpread, 0, 5)
	f.Between("max_work", c.MaxWork, 0, day)
	if c.WorkTail != 0 {
		f.Between("work_tail", c.WorkTail, 0.5, 10)
	}
	f.Between("output_share", c.OutputShare, 0, 1)
	f.Between("view", c.View, 0, large)
	f.Between("view_by_size", c.ViewBySize, 0, 2)
	f.Between("max_demand", c.MaxDemand, 1e-6, large)
	f.Between("popularity_spread", c.PopularitySpread, 0, 5)
	f.Between("popularity_by_size", c.PopularityBySize, -1, 1)
}

// newPopulation draws projects until full says that the last one completes it.
func newPopulation(cfg *Config, full func(*projectModel) bool) ([]projectModel, error) {
	rng := rand.New(source(cfg.Seed, streamPopulation, 0))
	var projects []projectModel
	for {
		if len(projects) == cfg.Population.MaxProjects {
			return nil, fmt.Errorf("workload: population.max_projects: %d do not make %d jobs in %v s: take a longer duration or fewer jobs",
				len(projects), cfg.Jobs, cfg.Duration)
		}
		project := drawProject(rng, cfg, firstID+len(projects))
		projects = append(projects, project)
		if full(&projects[len(projects)-1]) {
			return projects, nil
		}
	}
}

func drawProject(rng *rand.Rand, cfg *Config, id int) projectModel {
	c := &cfg.Population
	large := rng.NormFloat64() // the logarithm of the size, in standard deviations
	size := math.Exp(c.BytesSpread * large)
	bytes := min(c.Bytes*size, c.MaxBytes)
	size = bytes / c.Bytes

	p := projectModel{
		ID:         trace.Project(strconv.Itoa(id)),
		Bytes:      max(1, int64(bytes)),
		Load:       rounded(logNormal(rng, bytes/c.FetchRate, c.FetchSpread)),
		Popularity: math.Exp(c.PopularitySpread * correlated(rng, large, c.PopularityBySize)),
		view:       c.View * math.Pow(size, c.ViewBySize),
	}

	many := correlated(rng, large, c.ChannelsBySize)
	channels := min(max(1, int(c.Channels*math.Exp(c.ChannelsSpread*many))), c.MaxChannels)
	for i := range rng.IntN(c.SharedSets + 1) {
		p.Sets = append(p.Sets, setModel{
			Name: "s" + strconv.Itoa(i+1),
			Work: rounded(c.work(rng, c.Shared*c.Work*size)),
		})
	}
	p.Channels = make([]channelModel, channels)
	for i := range p.Channels {
		work := c.work(rng, c.Work*size)
		p.Channels[i] = channelModel{Operators: (1 - c.OutputShare) * work, Output: c.OutputShare * work}
		if len(p.Sets) > 0 {
			p.Channels[i].Set = 1 + rng.IntN(len(p.Sets))
		}
	}
	p.Period = cfg.Schedule.period(rng)
	p.limit(c.MaxDemand)
	p.Phase = cfg.Schedule.phase(rng, p.Period)
	return p
}

// correlated draws a normal number that correlates with another one.
func correlated(rng *rand.Rand, with, correlation float64) float64 {
	return correlation*with + math.Sqrt(1-correlation*correlation)*rng.NormFloat64()
}

// work draws the core-seconds of a channel or of shared rules.
func (c *PopulationConfig) work(rng *rand.Rand, median float64) float64 {
	if c.WorkTail > 0 {
		return min(pareto(rng, median, c.WorkTail), c.MaxWork)
	}
	return min(logNormal(rng, median, c.WorkSpread), c.MaxWork)
}

// limit makes a project run less often, then on fewer channels, until it keeps
// at most that many cores busy on average.
func (p *projectModel) limit(demand float64) {
	for p.work() > demand*p.Period && p.Period < day {
		p.Period = slower(p.Period)
	}
	for p.work() > demand*p.Period && len(p.Channels) > 1 {
		p.Channels = p.Channels[:len(p.Channels)/2]
	}
}
