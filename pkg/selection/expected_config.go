package selection

import (
	"fmt"
	"math"
)

// ExpectedConfig holds the parameters of Expected; 0 means the default.
type ExpectedConfig struct {
	// WaitPrice is how many seconds of fetching one second of waiting is worth:
	// reports are seconds old, so that a wait is longer than it looks for what
	// others have claimed since; 1.5, at least 1.
	WaitPrice float64
	// Spare is the share of an upstream's cores that count as taken, for the
	// jobs that others have sent there since its report; 1/8.
	Spare float64
	// RankPrice is the price of each rank in the project's rendezvous order
	// that a cold placement goes down, in fetch times: what it costs that the
	// next sidecar may place the project elsewhere; 1. It is multiplied by
	// 2 Busy² once that exceeds 1, from 0.7 jobs per core on. From the fifth
	// rank on all cost the same.
	RankPrice float64
	// WarmAt is the probability of the data being there from which on an
	// upstream counts as cached; 0.5.
	WarmAt float64
	// Band is the difference in cost, in seconds, below which cached upstreams
	// count as equal however fresh their reports; 0.05.
	Band float64
	// BandWidth is by how many standard deviations of the jobs that may have
	// come since the report the band widens; 1.
	BandWidth float64
	// SlowStart is for how many seconds an upstream that came up takes only
	// a growing share of the cold placements; 60.
	SlowStart float64
	// TailScale and LongestJob describe how long jobs last, in seconds, for the
	// price of a stop: a job outlasts t with a probability of TailScale / t,
	// none outlasts LongestJob; 1.6 and 7200 (the thesis's percentiles).
	TailScale  float64
	LongestJob float64
	// CoreRate is the jobs that a core completes in a second where no upstream's
	// rate is known yet; 1/12 (the thesis's mean job lasts 12 s).
	CoreRate float64
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
	// PartCrowding is the growth of that price in a pool that fills up: a pool
	// that is behind must not fall further behind by fetching.
	PartCrowding
	// PartBand is the choice among near-equal cached upstreams; without it the
	// cheapest is taken.
	PartBand
	// PartStop is the price of a stop before the job's end.
	PartStop
	// PartSlowStart is the growing share of cold placements after a start.
	PartSlowStart

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
	switch p {
	case PartWaitPrice:
		return "wait-price"
	case PartSpare:
		return "spare"
	case PartShadow:
		return "shadow"
	case PartPlacement:
		return "placement"
	case PartCrowding:
		return "crowding"
	case PartBand:
		return "band"
	case PartStop:
		return "stop"
	case PartSlowStart:
		return "slow-start"
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
		{"Spare", &c.Spare, 1.0 / 8},
		{"RankPrice", &c.RankPrice, 1},
		{"WarmAt", &c.WarmAt, 0.5},
		{"Band", &c.Band, 0.05},
		{"BandWidth", &c.BandWidth, 1},
		{"SlowStart", &c.SlowStart, 60},
		{"TailScale", &c.TailScale, 1.6},
		{"LongestJob", &c.LongestJob, 7200},
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
		return fmt.Errorf("expected: WaitPrice is %v: want 1 or more, lest a full upstream be cheaper than one with a free core", c.WaitPrice)
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
