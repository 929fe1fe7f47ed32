package judge

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Size is how much is played.
type Size struct {
	// Settings are drawn of each family, each with so many Seeds. One more seed tunes.
	Settings int
	Seeds    int
	// Parallel is how many settings are played at once. It changes no result.
	Parallel int
}

// Judgement is what came of all families.
type Judgement struct {
	Hash     string
	Size     Size
	Verdicts []Verdict
}

// Verdict is what came of one family.
type Verdict struct {
	Family
	// Ratios are geometric means over the settings, in the order of the table: the mean wait of low jobs over that
	// with the base of each setting that waited least where it was tuned, and with each base; and the other
	// figures over those of the first.
	Ratios []float64
	// Best names that base of each setting, Tuned the contenders that were chosen, by setting and base.
	Best  []string
	Tuned [][]string
	// Fetches of 1,000 jobs are those of each base, in the mean over the settings.
	Fetches []float64
	// Ours and Theirs are means over the settings: ours, and the best base's.
	Ours, Theirs Outcome
	played       []played
}

// played is what came of one setting.
type played struct {
	ours   Outcome
	bases  []Outcome
	tuned  []Contender
	chosen int // the base that is best where it was tuned
}

// Judge plays families. ended is called after each setting, one call at a time.
func Judge(ctx context.Context, hash string, families []Family, size Size, ended func()) (*Judgement, error) {
	j := &Judgement{Hash: hash, Size: size}
	for i := range families {
		j.Verdicts = append(j.Verdicts, Verdict{Family: families[i], played: make([]played, size.Settings)})
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(size.Parallel)
	var mutex sync.Mutex
	for i := range families {
		for n := range size.Settings {
			group.Go(func() error {
				p, err := families[i].play(within, hash, n, size.Seeds)
				if err != nil {
					return err
				}
				mutex.Lock()
				defer mutex.Unlock()
				j.Verdicts[i].played[n] = p
				ended()
				return nil
			})
		}
	}
	if err := group.Wait(); ctx.Err() != nil || err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	for i := range j.Verdicts {
		j.Verdicts[i].sum()
	}
	return j, nil
}

// play tunes every base on a seed of its own, and plays all on the others.
func (f *Family) play(ctx context.Context, hash string, number, seeds int) (p played, err error) {
	s := f.draw(seedOf(hash, f.Name, number))
	seed := seedOf(hash, f.Name, number, "tuning")
	jobs, cache, err := s.Jobs(seed)
	if err != nil {
		return p, err
	}
	best := math.Inf(1)
	for i, b := range bases() {
		least, chosen := math.Inf(1), b.grid[0]
		for _, c := range b.grid {
			o, err := c.Play(ctx, s, jobs, cache, seed)
			if err != nil {
				return p, err
			}
			if o[Low] < least {
				least, chosen = o[Low], c
			}
		}
		p.tuned = append(p.tuned, chosen)
		if least < best {
			best, p.chosen = least, i
		}
	}
	p.bases = make([]Outcome, len(p.tuned))
	for n := range seeds {
		seed := seedOf(hash, f.Name, number, "judged", n)
		if jobs, cache, err = s.Jobs(seed); err != nil {
			return p, err
		}
		for i, c := range append(slices.Clone(p.tuned), Contender{Policy: "expected"}) {
			o, err := c.Play(ctx, s, jobs, cache, seed)
			if err != nil {
				return p, err
			}
			if i < len(p.bases) {
				p.bases[i] = p.bases[i].plus(o, 1/float64(seeds))
			} else {
				p.ours = p.ours.plus(o, 1/float64(seeds))
			}
		}
	}
	return p, nil
}

// sum sums the settings up.
func (v *Verdict) sum() {
	share := 1 / float64(len(v.played))
	ratio := func(figure int, of func(p *played) Outcome) float64 {
		sum := 0.0
		for i := range v.played {
			sum += math.Log(v.played[i].ours[figure] / of(&v.played[i])[figure])
		}
		return math.Exp(sum / float64(len(v.played)))
	}
	theirs := func(p *played) Outcome { return p.bases[p.chosen] }
	v.Ratios = []float64{ratio(Low, theirs)}
	for i := range bases() {
		v.Ratios = append(v.Ratios, ratio(Low, func(p *played) Outcome { return p.bases[i] }))
		fetches := 0.0
		for n := range v.played {
			fetches += v.played[n].bases[i][Fetches] / float64(len(v.played))
		}
		v.Fetches = append(v.Fetches, fetches)
	}
	for figure := LowP99; figure <= Time; figure++ {
		v.Ratios = append(v.Ratios, ratio(figure, theirs))
	}
	for i := range v.played {
		p := &v.played[i]
		var tuned []string
		for _, c := range p.tuned {
			tuned = append(tuned, c.String())
		}
		v.Tuned, v.Best = append(v.Tuned, tuned), append(v.Best, tuned[p.chosen])
		v.Ours, v.Theirs = v.Ours.plus(p.ours, share), v.Theirs.plus(theirs(p), share)
	}
}
