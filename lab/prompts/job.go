package prompts

import "example.org/pilotfish/lab/trace"

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
