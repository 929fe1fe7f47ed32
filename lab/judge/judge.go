// Package judge compares pilotfish's policy with tuned rivals on settings that nobody has
// seen: the seeds of all draws come from a hash of the judged sources.
package judge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.org/pilotfish/lab/trace"
)

const (
	// draws is how many settings are drawn of each family.
	draws = 3
	// floor replaces shorter waits on both sides of a ratio, in seconds: the ratio of two shorter waits means nothing.
	floor = 0.05
)

// Judgement is the result of all families.
type Judgement struct {
	Hash     string // or another text from which the settings were drawn
	Ledger   string // the medians of all judgings, if they are known
	Verdicts []Verdict
}

// Verdict is the result of one family, setting by setting.
type Verdict struct {
	Family
	played [draws]played
}

// played is the result of one setting.
type played struct {
	ours     Outcome
	queued   Outcome // ours, if upstreams are first come, first served
	unprobed Outcome // ours, without probes
	alone    Outcome // ours, in one process that sees every job
	bases    []Outcome
	tuned    []Contender
	sums     []float64 // of the rivals' waits on the tuning seeds
}

// best returns the outcome of the rival with the smallest wait on the tuning seeds, among those that among accepts.
func (p *played) best(among func(b *rivalKind) bool) Outcome {
	best, least := 0, math.Inf(1)
	for i, b := range rivalKinds() {
		if among(&b) && p.sums[i] < least {
			best, least = i, p.sums[i]
		}
	}
	return p.bases[best]
}

func (p *played) bestOfAll() Outcome { return p.best(func(*rivalKind) bool { return true }) }

// Judge plays families. ended is called after each setting, one call at a time.
func Judge(ctx context.Context, hash string, families []Family, ended func(ended, all int)) (*Judgement, error) {
	j := &Judgement{Hash: hash, Verdicts: make([]Verdict, len(families))}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var mutex sync.Mutex
	done := 0
	for i := range families {
		j.Verdicts[i].Family = families[i]
		for n := range draws {
			group.Go(func() (err error) {
				if j.Verdicts[i].played[n], err = families[i].play(within, hash, n); err != nil {
					return err
				}
				mutex.Lock()
				defer mutex.Unlock()
				done++
				ended(done, len(families)*draws)
				return nil
			})
		}
	}
	if err := group.Wait(); ctx.Err() != nil || err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return j, nil
}

// play draws a setting, chooses the limits of every rival on the tuning seeds, and simulates all
// contenders on the remaining seeds.
func (f *Family) play(ctx context.Context, hash string, number int) (p played, err error) {
	s := f.draw(Seed(hash, f.Name, number))
	var tuned [tuning]struct {
		seed  uint64
		jobs  []trace.Job
		cache int64
	}
	for n := range tuned {
		t := &tuned[n]
		t.seed = Seed(hash, f.Name, number, "tuning", n)
		if t.jobs, t.cache, err = s.Jobs(t.seed); err != nil {
			return p, err
		}
	}
	for _, b := range rivalKinds() {
		chosen, sum, err := b.tune(func(c Contender, n int) (float64, error) {
			o, err := c.Play(ctx, s, tuned[n].jobs, tuned[n].cache, tuned[n].seed)
			return max(floor, o[Waits]), err
		})
		if err != nil {
			return p, err
		}
		p.tuned, p.sums = append(p.tuned, chosen), append(p.sums, sum)
	}
	contenders := append(slices.Clone(p.tuned), Contender{Policy: "expected"}, Contender{Policy: "expected", Queued: true}, Contender{Policy: "expected", Unprobed: true},
		Contender{Policy: "expected", Alone: true})
	all := make([]Outcome, len(contenders))
	for n := range f.seeds {
		seed := Seed(hash, f.Name, number, "judged", n)
		jobs, cache, err := s.Jobs(seed)
		if err != nil {
			return p, err
		}
		for i, c := range contenders {
			o, err := c.Play(ctx, s, jobs, cache, seed)
			if err != nil {
				return p, err
			}
			for figure := range o {
				all[i][figure] += o[figure] / float64(f.seeds)
			}
		}
	}
	p.bases, all = all[:len(p.tuned)], all[len(p.tuned):]
	p.ours, p.queued, p.unprobed, p.alone = all[0], all[1], all[2], all[3]
	return p, nil
}

// mean is the mean of a figure over the settings.
func (v *Verdict) mean(of func(p *played) float64) (mean float64) {
	for i := range v.played {
		mean += of(&v.played[i]) / draws
	}
	return mean
}

// means returns two means over the settings for each figure: ours and the best rival's.
func (v *Verdict) means(figures ...int) (all []float64) {
	for _, figure := range figures {
		all = append(all,
			v.mean(func(p *played) float64 { return p.ours[figure] }),
			v.mean(func(p *played) float64 { return p.bestOfAll()[figure] }))
	}
	return all
}

// ratio returns our figure divided by a rival's, as the geometric mean over the settings.
func (v *Verdict) ratio(figure int, base func(p *played) Outcome) float64 {
	return v.compare(figure, func(p *played) Outcome { return p.ours }, base)
}

// compare returns a figure of one outcome divided by that of another, as the geometric mean over the settings.
func (v *Verdict) compare(figure int, one, other func(p *played) Outcome) float64 {
	return math.Exp(v.mean(func(p *played) float64 {
		return math.Log(max(floor, one(p)[figure]) / max(floor, other(p)[figure]))
	}))
}

// headlines are the figures that ratios compares with the best rival's.
var headlines = []struct {
	name   string
	figure int
}{
	{"all waits", Waits}, {"duration", Time}, {"p99", WaitsP99}, {"until start", Low}, {"its p99", LowP99}, {"all, high", HighWaits}, {"high p99", HighWaitsP99},
}

// ratios returns our headline figures divided by the best rival's. Then, for all waits: ours over the best rival with as many
// processes; ours over the best in one process; ours over ours in one process, the loss because each sidecar sees only its own
// jobs; and ours in one process over the best in one, the loss by the rule.
func (v *Verdict) ratios() (all []float64) {
	for _, h := range headlines {
		all = append(all, v.ratio(h.figure, (*played).bestOfAll))
	}
	many := func(p *played) Outcome { return p.best(func(b *rivalKind) bool { return !b.alone }) }
	one := func(p *played) Outcome { return p.best(func(b *rivalKind) bool { return b.alone }) }
	alone := func(p *played) Outcome { return p.alone }
	return append(all, v.ratio(Waits, many), v.ratio(Waits, one), v.ratio(Waits, alone), v.compare(Waits, alone, one))
}

// byRival returns the ratio of all waits to each rival's.
func (v *Verdict) byRival() (all []float64) {
	for i := range rivalKinds() {
		all = append(all, v.ratio(Waits, func(p *played) Outcome { return p.bases[i] }))
	}
	return all
}

// Seed returns the seed of a draw: a hash of the draw's names.
func Seed(names ...any) uint64 {
	sum := sha256.Sum256(fmt.Append(nil, names...))
	return binary.BigEndian.Uint64(sum[:]) >> 1
}
