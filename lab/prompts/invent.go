package prompts

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/lab/trace"
)

// Invent generates an hour of prompts. One chat of four is a single long prompt. The others start with one of twenty templates, most
// often the first one, and have six turns on average. Each turn adds some blocks.
func Invent(seed uint64) (jobs []trace.Job) {
	const hour, chats, templates = 3600, 2200, 20
	rng, next := rand.New(rand.NewPCG(seed, 0)), int64(0)
	grow := func(blocks []int64, mean float64) []int64 {
		blocks = slices.Clone(blocks)
		for range 1 + int(rng.ExpFloat64()*mean) {
			blocks, next = append(blocks, next), next+1
		}
		return blocks
	}
	var begin [templates][]int64
	for i := range begin {
		begin[i] = grow(nil, 4)
	}
	for chat := range int64(chats) {
		at, turns := rng.Float64()*hour, 1+int(rng.ExpFloat64()*6)
		blocks, mean := begin[int(templates*rng.Float64()*rng.Float64())], 3.0
		if chat%4 == 0 {
			turns, blocks, mean = 1, nil, 40
		}
		for ; turns > 0 && at < hour; turns-- {
			blocks = grow(blocks, mean)
			read, write := int64(len(blocks))*trace.BlockTokens, int64(1+rng.ExpFloat64()*300)
			jobs = append(jobs, trace.Job{Offset: at, Read: read, Write: write, Blocks: blocks, Submitter: chat})
			at += 20 + rng.ExpFloat64()*60
		}
	}
	slices.SortFunc(jobs, func(a, b trace.Job) int { return cmp.Compare(a.Offset, b.Offset) })
	return jobs
}
