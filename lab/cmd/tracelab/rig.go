package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sort"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/judge"
	"example.org/pilotfish/lab/trace"
)

const (
	// mostReports bounds the reports of upstreams in one simulation.
	mostReports = 1e6
	// A result is as good as another one if its waits and durations are longer by at most this share of the mean duration,
	// and at most toleranceLost more jobs of 1,000 got no response.
	tolerance, toleranceLost = 0.05, 1
	// doubtful is the largest relative change of the ratio of durations at which a result is still sure.
	doubtful = 0.1
)

var pilotfish = judge.Contender{Policy: "expected"}

// rig simulates the jobs of a log.
type rig struct {
	ctx         context.Context
	setting     *judge.Setting
	present     judge.Contender
	jobs, costs []trace.Job // costs is a copy with the costs of the logs
	cache       int64       // number of keys in an upstream's cache
	failed      error       // the first error
}

func (r *rig) play(who judge.Contender, upstreams int) judge.Outcome {
	if r.failed != nil {
		return judge.Outcome{}
	}
	s := *r.setting
	s.Fleet.Upstreams = upstreams
	o, err := who.Play(r.ctx, &s, r.jobs, r.cache, 1)
	r.failed = cmp.Or(r.failed, err)
	return o
}

// fewest returns the smallest number of upstreams with which waits and durations are as good as goal.
func (r *rig) fewest(who judge.Contender, goal judge.Outcome, high int) int {
	low := 1.0
	for i := range r.jobs {
		low += r.jobs[i].Operators / float64(r.setting.Fleet.Cores) / max(1, r.jobs[len(r.jobs)-1].Offset)
	}
	return atLeast(min(int(low), high), high, func(n int) bool {
		o := r.play(who, n)
		for _, figure := range []int{judge.Low, judge.LowP99, judge.Time} {
			if o[figure] > goal[figure]+tolerance*goal[judge.Time] {
				return false
			}
		}
		return o[judge.Unanswered] <= goal[judge.Unanswered]+toleranceLost
	})
}

// atLeast returns the smallest number from low for which does is true; high if there is none below it.
func atLeast(low, high int, does func(int) bool) int {
	return low + sort.Search(max(0, high-low), func(n int) bool { return does(low + n) })
}

// hits returns the share of cache hits.
func hits(o judge.Outcome) float64 { return 1 - o[judge.Fetches]/1000 }

func hitsOf(seen trace.Seen) float64 { return float64(seen.Hits) / float64(max(1, seen.Hit)) }

// fitCache sets the number of keys in an upstream's cache so that the hit rate is that of the logs.
func (r *rig) fitCache(a *answer, seen trace.Seen) {
	all := int(r.cache)
	more := func(n int, hitsMore float64) bool {
		r.cache = int64(n)
		return hits(r.play(r.present, r.setting.Fleet.Upstreams)) >= hitsOf(seen)+hitsMore
	}
	if more(all, 0.02) {
		r.cache = int64(atLeast(1, all, func(n int) bool { return more(n, 0) }))
		a.assume("An upstream's cache holds %s of %d: this fits the hits in the logs best (--cached).", cli.Count(int(r.cache), "key"), all)
	} else {
		a.assume("An upstream's cache holds all keys (--cached).")
	}
}

// scale sets the costs of jobs to a percentage of those in the logs.
func (r *rig) scale(percent int) {
	for i := range r.jobs {
		r.jobs[i].Load, r.jobs[i].Operators = r.costs[i].Load*float64(percent)/100, r.costs[i].Operators*float64(percent)/100
	}
}

// fitCosts scales costs so that the present policy has the mean duration of the logs, and returns the percentage.
func (r *rig) fitCosts(duration float64) int {
	percent := atLeast(70, 100, func(n int) bool {
		r.scale(n)
		return r.play(r.present, r.setting.Fleet.Upstreams)[judge.Time] >= duration
	})
	r.scale(percent)
	return percent
}

// doubts returns the reasons why the result can be wrong. It simulates the jobs again with other values of what the
// logs do not contain.
func (r *rig) doubts(c *whatifCommand, seen trace.Seen, now, ours judge.Outcome) (list []string) {
	doubt := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if ratio := now[judge.Time] / max(0.01, seen.Duration); !(ratio > 0.9 && ratio < 1.1) {
		doubt("the mean duration is %.3g s in the simulation of the present policy, and %.3g s in the logs: is --present right?", now[judge.Time], seen.Duration)
	}
	if seen.Wait > seen.Duration/4 {
		doubt("jobs waited %.3g s in the logs, a large part of their duration: small errors in their costs cause large errors of long waits.", seen.Wait)
	}
	if off := hits(now) - hitsOf(seen); seen.Hit > 0 && math.Abs(off) > 0.05 {
		doubt("the simulation of the present policy has %.0f %% hits, the logs have %.0f %%: is --present right?", 100*hits(now), 100*hitsOf(seen))
	}
	if seen.Crowding > 0 {
		doubt("jobs ran longer at crowded upstreams: upstreams run fewer than %d at a time (--cores), or are not first come, first served.", seen.Cores)
	}
	if len(list) > 0 {
		return list
	}
	today, before := r.setting.Fleet.Upstreams, *r
	other := func(what string) {
		ratio, others := ours[judge.Time]/now[judge.Time], r.play(pilotfish, today)[judge.Time]/r.play(r.present, today)[judge.Time]
		if r.failed == nil && math.Abs(others/ratio-1) > doubtful {
			doubt("with pilotfish the mean duration is %.2f times today's, or %.2f times %s.", ratio, others, what)
		}
		r.cache = before.cache
	}
	if seen.Hit == 0 && c.Cached == 0 {
		r.cache = max(1, r.cache/8)
		other("if an upstream's cache holds an eighth of the keys: log hits, or set --cached")
	}
	if seen.Fetch > 0 && c.Fetch == 0 {
		for _, by := range []float64{0.5, 2} {
			for i := range r.jobs {
				r.jobs[i].Load *= by
			}
			other(fmt.Sprintf("if a fetch takes %.3g s: log hits, or set --fetch", by*seen.Fetch))
			for i := range r.jobs {
				r.jobs[i].Load /= by
			}
		}
	}
	return list
}
