package prompts

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/lab/trace"
)

// Job is a prompt.
type Job struct {
	Offset      float64 // when it comes, in seconds
	Read, Write int64   // tokens
	Blocks      []int64 // numbered from 0 on
	Session     uint64  // the chat that it goes on with
}

// Jobs are in the order of their offsets.
type Jobs []Job

// Read reads the prompts of a trace. It numbers the chats: a prompt goes on with the chat in which its deepest known
// block came first. The first block, which all may share, is no sign of that.
func Read(all []trace.Job) (jobs Jobs) {
	type known struct {
		number  int64
		session uint64
	}
	blocks := map[int64]known{}
	for _, t := range all {
		j := Job{Offset: t.Offset, Read: t.Read, Write: t.Write, Session: uint64(len(jobs) + 1)}
		for depth, b := range t.Blocks {
			if k, ok := blocks[b]; ok && depth > 0 {
				j.Session = k.session
			}
		}
		for _, b := range t.Blocks {
			if _, ok := blocks[b]; !ok {
				blocks[b] = known{int64(len(blocks)), j.Session}
			}
			j.Blocks = append(j.Blocks, blocks[b].number)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// full is the blocks that are full: only they are kept.
func (j *Job) full() []int64 { return j.Blocks[:min(int64(len(j.Blocks)), j.Read/trace.BlockTokens)] }

// Invent invents an hour of prompts. Of four chats, one is a single long prompt; the others go on from one of twenty
// templates, the first the most often, for six turns in the mean, each of which brings some blocks.
func Invent(seed uint64) (jobs Jobs) {
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
	for chat := range uint64(chats) {
		at, turns := rng.Float64()*hour, 1+int(rng.ExpFloat64()*6)
		blocks, mean := begin[int(templates*rng.Float64()*rng.Float64())], 3.0
		if chat%4 == 0 {
			turns, blocks, mean = 1, nil, 40
		}
		for ; turns > 0 && at < hour; turns-- {
			blocks = grow(blocks, mean)
			read, write := int64(len(blocks))*trace.BlockTokens, int64(1+rng.ExpFloat64()*300)
			jobs = append(jobs, Job{Offset: at, Read: read, Write: write, Blocks: blocks, Session: chat})
			at += 20 + rng.ExpFloat64()*60
		}
	}
	slices.SortFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Offset, b.Offset) })
	return jobs
}
