package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"example.org/pilotfish/pkg/trace"
)

// firstID is the smallest project identifier.
const firstID = 10_001

// PopulationConfig shapes the projects. Spreads are standard deviations of
// logarithms. The zero value of each field means its default; the defaults
// are calibrated on the production rows of the thesis's tables 4 and 5, with
// 14 upstreams of 16 cores.
type PopulationConfig struct {
	// MaxProjects bounds the population, and so its memory: 1,000,000.
	MaxProjects int `yaml:"max_projects"`
	// Bytes is the median size of a project's data: 4 MB, with a spread of 2
	// and at most 8 GB, so from hundreds of items to millions.
	Bytes       float64 `yaml:"bytes"`
	BytesSpread float64 `yaml:"bytes_spread"`
	MaxBytes    float64 `yaml:"max_bytes"`
	// FetchRate is how many bytes one core-second fetches: 25 MB.
	FetchRate float64 `yaml:"fetch_rate"`
	// FetchSpread sets the rates of projects apart: 0.4.
	FetchSpread float64 `yaml:"fetch_spread"`

	// Channels is the median number of a project's export channels: 3, with a
	// spread of 1.2 and at most 400.
	Channels       float64 `yaml:"channels"`
	ChannelsSpread float64 `yaml:"channels_spread"`
	MaxChannels    int     `yaml:"max_channels"`
	// ChannelsBySize is how their logarithm correlates with the size's: 0.3.
	ChannelsBySize float64 `yaml:"channels_by_size"`
	// SharedSets is how many sets of shared rules a project has at most, 3;
	// one in SharedSets+1 projects has none.
	SharedSets int `yaml:"shared_sets"`
	// Shared is the work of a set as a share of a channel's: 0.5.
	Shared float64 `yaml:"shared"`

	// Work is the median core-seconds of a channel's operators and output in
	// a project of median size: 0.07, with a spread of 1.5. It grows in
	// proportion with the size, to 1800 at most.
	Work       float64 `yaml:"work"`
	WorkSpread float64 `yaml:"work_spread"`
	MaxWork    float64 `yaml:"max_work"`
	// OutputShare is the output's share of it: 0.2.
	OutputShare float64 `yaml:"output_share"`
	// View is the median core-seconds of a high job in a project of median
	// size: 0.18. It grows with the size to the power ViewBySize, 0.85: a page
	// shows no more of a large feed than of a small one.
	View       float64 `yaml:"view"`
	ViewBySize float64 `yaml:"view_by_size"`

	// MaxDemand is the cores that one project may keep busy on average: 4.
	// Nobody exports a huge feed to hundreds of channels every quarter of an
	// hour: such a project runs less often, then to fewer channels.
	MaxDemand float64 `yaml:"max_demand"`
	// PopularitySpread is how much more people work on some projects than on
	// others: 1.5.
	PopularitySpread float64 `yaml:"popularity_spread"`
}

func (c PopulationConfig) withDefaults() PopulationConfig {
	orDefault(&c.MaxProjects, 1_000_000)
	orDefault(&c.Bytes, 4e6)
	orDefault(&c.BytesSpread, 2)
	orDefault(&c.MaxBytes, 8e9)
	orDefault(&c.FetchRate, 25e6)
	orDefault(&c.FetchSpread, 0.4)
	orDefault(&c.Channels, 3)
	orDefault(&c.ChannelsSpread, 1.2)
	orDefault(&c.ChannelsBySize, 0.3)
	orDefault(&c.MaxChannels, 400)
	orDefault(&c.SharedSets, 3)
	orDefault(&c.Shared, 0.5)
	orDefault(&c.Work, 0.07)
	orDefault(&c.WorkSpread, 1.5)
	orDefault(&c.MaxWork, 1800)
	orDefault(&c.OutputShare, 0.2)
	orDefault(&c.View, 0.18)
	orDefault(&c.ViewBySize, 0.85)
	orDefault(&c.MaxDemand, 4)
	orDefault(&c.PopularitySpread, 1.5)
	return c
}

func (c *PopulationConfig) validate() error {
	const large = 1e12
	for _, f := range [...]struct {
		field            string
		value, low, high float64
	}{
		{"max_projects", float64(c.MaxProjects), 1, 1e8},
		{"bytes", c.Bytes, 1, large}, {"bytes_spread", c.BytesSpread, 0, 5}, {"max_bytes", c.MaxBytes, 1, large},
		{"fetch_rate", c.FetchRate, 1, large}, {"fetch_spread", c.FetchSpread, 0, 5},
		{"channels", c.Channels, 1, large}, {"channels_spread", c.ChannelsSpread, 0, 5}, {"channels_by_size", c.ChannelsBySize, -1, 1},
		{"max_channels", float64(c.MaxChannels), 1, 1e5},
		{"shared_sets", float64(c.SharedSets), 1, 1000}, {"shared", c.Shared, 0, large},
		{"work", c.Work, 0, large}, {"work_spread", c.WorkSpread, 0, 5}, {"max_work", c.MaxWork, 0, day},
		{"output_share", c.OutputShare, 0, 1},
		{"view", c.View, 0, large}, {"view_by_size", c.ViewBySize, 0, 2},
		{"max_demand", c.MaxDemand, 1e-6, large}, {"popularity_spread", c.PopularitySpread, 0, 5},
	} {
		if err := inRange("population."+f.field, f.value, f.low, f.high); err != nil {
			return err
		}
	}
	return nil
}

// Population is all projects.
type Population struct{ Projects []Project }

// newPopulation draws projects until full says that the one drawn last completes it.
func newPopulation(cfg *Config, full func(*Project) bool) (*Population, error) {
	rng := rand.New(source(cfg.Seed, streamPopulation, 0))
	var p Population
	for {
		if len(p.Projects) == cfg.Population.MaxProjects {
			return nil, fmt.Errorf("workload: population.max_projects: %d do not make %d jobs in %v s: a longer duration would do, or fewer jobs",
				len(p.Projects), cfg.Jobs, cfg.Duration)
		}
		project := drawProject(rng, cfg, firstID+len(p.Projects))
		p.Projects = append(p.Projects, project)
		if full(&p.Projects[len(p.Projects)-1]) {
			return &p, nil
		}
	}
}

func drawProject(rng *rand.Rand, cfg *Config, id int) Project {
	c := &cfg.Population
	large := rng.NormFloat64() // the logarithm of the size, in standard deviations
	size := math.Exp(c.BytesSpread * large)
	bytes := min(c.Bytes*size, c.MaxBytes)
	size = bytes / c.Bytes

	p := Project{
		ID:         trace.Project(strconv.Itoa(id)),
		Bytes:      max(1, int64(bytes)),
		Load:       seconds(logNormal(rng, bytes/c.FetchRate, c.FetchSpread)),
		Popularity: logNormal(rng, 1, c.PopularitySpread),
		view:       c.View * math.Pow(size, c.ViewBySize),
	}

	many := c.ChannelsBySize*large + math.Sqrt(1-c.ChannelsBySize*c.ChannelsBySize)*rng.NormFloat64()
	channels := min(max(1, int(c.Channels*math.Exp(c.ChannelsSpread*many))), c.MaxChannels)
	for i := range rng.IntN(c.SharedSets + 1) {
		p.Sets = append(p.Sets, Set{
			Name: "s" + strconv.Itoa(i+1),
			Work: seconds(min(logNormal(rng, c.Shared*c.Work*size, c.WorkSpread), c.MaxWork)),
		})
	}
	p.Channels = make([]Channel, channels)
	for i := range p.Channels {
		work := min(logNormal(rng, c.Work*size, c.WorkSpread), c.MaxWork)
		p.Channels[i] = Channel{Operators: (1 - c.OutputShare) * work, Output: c.OutputShare * work}
		if len(p.Sets) > 0 {
			p.Channels[i].Set = 1 + rng.IntN(len(p.Sets))
		}
	}
	p.Period = cfg.Schedule.period(rng)
	p.limit(c.MaxDemand)
	p.Phase = cfg.Schedule.phase(rng, p.Period)
	return p
}

// limit makes a project run less often, then on fewer channels, until it keeps
// at most that many cores busy on average.
func (p *Project) limit(demand float64) {
	for p.work() > demand*p.Period && p.Period < day {
		p.Period = slower(p.Period)
	}
	for p.work() > demand*p.Period && len(p.Channels) > 1 {
		p.Channels = p.Channels[:len(p.Channels)/2]
	}
}
