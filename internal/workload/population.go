package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"pilotfish/pkg/trace"
)

// maxProjects bounds a population, and with it the memory that it takes.
const maxProjects = 1_000_000

// firstID is the smallest project identifier.
const firstID = 10_001

// PopulationConfig shapes the projects. Spreads are standard deviations of
// logarithms. The zero value of each field means its default; the defaults
// are calibrated on the production rows of the thesis's tables 4 and 5.
type PopulationConfig struct {
	// Bytes and BytesSpread give the size of a project's data: median 4 MB,
	// spread 2, so from hundreds of items to millions. MaxBytes is 8 GB.
	Bytes, BytesSpread, MaxBytes float64
	// FetchRate is how many bytes one core-second fetches: 25 MB.
	// FetchSpread, 0.4, sets projects of equal size apart.
	FetchRate, FetchSpread float64

	// Channels and ChannelsSpread give a project's export channels: median 3,
	// spread 1.2, at most MaxChannels, 400. ChannelsBySize, 0.3, is the
	// correlation with the logarithm of the size.
	Channels, ChannelsSpread, ChannelsBySize float64
	MaxChannels                              int
	// SharedSets is how many sets of shared rules a project has at most, 3;
	// one in SharedSets+1 projects has none. Shared is the work of a set as a
	// share of the median channel's: 0.5.
	SharedSets int
	Shared     float64

	// Work and WorkSpread give the core-seconds of a channel's rules and
	// output in a project of median size: median 0.12, spread 1.3. Work grows
	// in proportion with the size, to MaxWork, 1800, at most. Output is
	// OutputShare of it, 0.2.
	Work, WorkSpread, MaxWork, OutputShare float64
	// View is the core-seconds of a high job in a project of median size,
	// 0.12, and ViewBySize, 0.85, the power of the size with which it grows:
	// a page shows no more of a large feed than of a small one.
	View, ViewBySize float64

	// MaxDemand is the cores that one project may keep busy on average:
	// 2. Nobody exports a huge feed to hundreds of channels every quarter of an
	// hour: such a project runs less often, then to fewer channels.
	MaxDemand float64
	// PopularitySpread, 1.5, is how much more people work on some projects than on others.
	PopularitySpread float64
}

func (c PopulationConfig) withDefaults() PopulationConfig {
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
	orDefault(&c.Work, 0.12)
	orDefault(&c.WorkSpread, 1.3)
	orDefault(&c.MaxWork, 1800)
	orDefault(&c.OutputShare, 0.2)
	orDefault(&c.View, 0.12)
	orDefault(&c.ViewBySize, 0.85)
	orDefault(&c.MaxDemand, 2)
	orDefault(&c.PopularitySpread, 1.5)
	return c
}

func (c *PopulationConfig) validate() error {
	const large = 1e12
	for _, f := range [...]struct {
		field            string
		value, low, high float64
	}{
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
		if len(p.Projects) == maxProjects {
			return nil, fmt.Errorf("workload: %d projects do not make %d jobs in %v s: a longer duration or fewer jobs would do",
				maxProjects, cfg.Jobs, cfg.Duration)
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
