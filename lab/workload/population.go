package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"example.org/pilotfish/lab/trace"
)

// firstID is the smallest project identifier.
const firstID = 10_001

// The projects, calibrated on the production rows of the thesis's tables 4 and 5, with 14
// upstreams of 16 cores. Sizes go from hundreds of items to millions. Spreads are standard
// deviations of logarithms.
const (
	// maxProjects bounds the population, and so its memory.
	maxProjects = 1_000_000
	// medianBytes is the median size of a project's data.
	medianBytes, bytesSpread = 4e6, 2.0
	// fetchRate is the median number of bytes that are fetched per core-second, and fetchSpread
	// the spread over projects.
	fetchRate, fetchSpread = 25e6, 0.4

	// medianChannels is the median number of a project's export channels, maxChannels
	// the largest number. channelsBySize is the correlation of its logarithm with that of the size.
	medianChannels, channelsSpread = 3.0, 1.2
	maxChannels                    = 400
	channelsBySize                 = 0.3
	// sharedSets is the largest number of sets of shared rules that a project has; one in
	// sharedSets+1 projects has none. sharedWork is the work of a set as a share of a channel's.
	sharedSets, sharedWork = 3, 0.5

	// medianWork is the median work of a channel's operators and output in a project of
	// median size, in core-seconds. It grows in proportion with the size.
	medianWork, workSpread = 0.07, 1.5
	// outputShare is the output's share of the work.
	outputShare = 0.2
	// medianView is the median work of a high job in a project of median size, in
	// core-seconds. It grows with the size to the power viewBySize: a page shows
	// no more of a large feed than of a small one.
	medianView, viewBySize = 0.18, 0.85

	// maxDemand bounds the cores that one project keeps busy on average. Nobody
	// exports a huge feed to hundreds of channels every quarter of an hour: such
	// a project gets a longer period, and then fewer channels.
	maxDemand = 4
	// popularitySpread is the spread of the number of sessions per project.
	popularitySpread = 1.5
)

// projectModel is one project of the population. After it was drawn, only imports changes.
type projectModel struct {
	ID trace.Project
	// Bytes is the size of its data in a cache.
	Bytes int64
	// Load is the core-seconds of fetching the data, which is the FeedSource joblet.
	Load float64
	// Period is the time between two firings of its schedule, and Phase when
	// the first is due, in seconds.
	Period, Phase float64
	// Channels are its export channels.
	Channels []channelModel
	// Sets are its sets of shared rules.
	Sets []setModel
	// Popularity is how often people open it, relative to the others.
	Popularity float64
	// view is the core-seconds of a typical high job.
	view float64
	// imports counts how often its data was replaced.
	imports int64
}

// channelModel is one export channel of a project.
type channelModel struct {
	// Set is the set of shared rules that runs before the operators; the zero value is none.
	Set setModel
	// Operators and Output are the usual core-seconds of the joblets of these names.
	Operators, Output float64
}

// setModel is a set of rules that channels share.
type setModel struct {
	Name string
	// Work is the core-seconds of its SharedOperators joblet.
	Work float64
}

// work returns the core-seconds of one firing of the schedule when the data is cached.
func (p *projectModel) work() float64 {
	sum := 0.0
	for _, c := range p.Channels {
		sum += c.Operators + c.Output
	}
	for _, s := range p.Sets {
		sum += s.Work
	}
	return sum
}

// newPopulation draws projects until full returns true for the last one.
func newPopulation(cfg *Config, full func(*projectModel) bool) ([]projectModel, error) {
	rng := rand.New(source(cfg.Seed, streamPopulation, 0))
	var projects []projectModel
	for {
		if len(projects) == maxProjects {
			return nil, fmt.Errorf("workload: even %d projects submit fewer than %d jobs in %v s: set a longer duration or fewer jobs",
				len(projects), cfg.Jobs, cfg.Duration)
		}
		projects = append(projects, drawProject(rng, cfg, firstID+len(projects)))
		if full(&projects[len(projects)-1]) {
			return projects, nil
		}
	}
}

func drawProject(rng *rand.Rand, cfg *Config, id int) projectModel {
	large := rng.NormFloat64() // the logarithm of the size, in standard deviations
	size := math.Exp(bytesSpread * large)
	bytes := min(medianBytes*size, cfg.MaxBytes)
	size = bytes / medianBytes

	p := projectModel{
		ID:         trace.Project(strconv.Itoa(id)),
		Bytes:      max(1, int64(bytes)),
		Load:       rounded(logNormal(rng, bytes/fetchRate, fetchSpread)),
		Popularity: math.Exp(popularitySpread * rng.NormFloat64()),
		view:       medianView * math.Pow(size, viewBySize),
	}

	many := channelsBySize*large + math.Sqrt(1-channelsBySize*channelsBySize)*rng.NormFloat64()
	channels := min(max(1, int(medianChannels*math.Exp(channelsSpread*many))), maxChannels)
	for i := range rng.IntN(sharedSets + 1) {
		p.Sets = append(p.Sets, setModel{
			Name: "s" + strconv.Itoa(i+1),
			Work: rounded(min(logNormal(rng, sharedWork*medianWork*size, workSpread), cfg.MaxWork)),
		})
	}
	p.Channels = make([]channelModel, channels)
	for i := range p.Channels {
		work := min(logNormal(rng, medianWork*size, workSpread), cfg.MaxWork)
		p.Channels[i] = channelModel{Operators: (1 - outputShare) * work, Output: outputShare * work}
		if len(p.Sets) > 0 {
			p.Channels[i].Set = p.Sets[rng.IntN(len(p.Sets))]
		}
	}
	p.Period = drawPeriod(rng)
	p.limit(maxDemand)
	p.Phase = drawPhase(rng, p.Period)
	return p
}

// limit lengthens a project's period, then removes channels, until the project keeps
// at most demand cores busy on average.
func (p *projectModel) limit(demand float64) {
	for p.work() > demand*p.Period && p.Period < day {
		p.Period = slower(p.Period)
	}
	for p.work() > demand*p.Period && len(p.Channels) > 1 {
		p.Channels = p.Channels[:len(p.Channels)/2]
	}
}
