package judge

import (
	"context"
	"math"
	"slices"
	"sync"
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
	Hash     string    `json:"hash"`
	Settings int       `json:"settings"`
	Seeds    int       `json:"seeds"`
	Verdicts []Verdict `json:"families"`
}

// Verdict is what came of one family.
type Verdict struct {
	Family
	// Waits are the ratios of the mean wait of low jobs to that with each base; Best names
	// the base of each setting that waited least where it was tuned. The other ratios are
	// to that one.
	Waits []float64 `json:"waits"`
	Best  []string  `json:"best"`
	// Tuned has the contenders that were chosen, by setting and base.
	Tuned [][]string `json:"tuned"`
	Ratio Ratios     `json:"ratio"`
	// Fetches of 1,000 jobs are those of each base, in the mean over the settings.
	Fetches []float64 `json:"fetches"`
	// Ours and Theirs are means over the settings: ours, and the best base's.
	Ours   Outcome `json:"ours"`
	Theirs Outcome `json:"theirs"`
	played []played
}

// Ratios are geometric means over the settings.
type Ratios struct {
	Low     float64 `json:"low_wait"`
	LowP99  float64 `json:"low_wait_p99"`
	High    float64 `json:"high_wait"`
	HighP99 float64 `json:"high_wait_p99"`
	Time    float64 `json:"low_time"`
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j := &Judgement{Hash: hash, Settings: size.Settings, Seeds: size.Seeds}
	type task struct{ family, setting int }
	tasks := make(chan task)
	for i := range families {
		j.Verdicts = append(j.Verdicts, Verdict{Family: families[i], played: make([]played, size.Settings)})
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	for range size.Parallel {
		group.Go(func() {
			for t := range tasks {
				p, err := families[t.family].play(ctx, hash, t.setting, size.Seeds)
				if err != nil {
					cancel(err)
					continue
				}
				mutex.Lock()
				j.Verdicts[t.family].played[t.setting] = p
				ended()
				mutex.Unlock()
			}
		})
	}
	for i := range families {
		for n := range size.Settings {
			tasks <- task{i, n}
		}
	}
	close(tasks)
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
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
			if o.Low < least {
				least, chosen = o.Low, c
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
	mean := func(of func(p *played) float64) float64 {
		sum := 0.0
		for i := range v.played {
			sum += math.Log(of(&v.played[i]))
		}
		return math.Exp(sum / float64(len(v.played)))
	}
	theirs := func(p *played) Outcome { return p.bases[p.chosen] }
	for i := range bases() {
		v.Waits = append(v.Waits, mean(func(p *played) float64 { return p.ours.Low / p.bases[i].Low }))
		fetches := 0.0
		for n := range v.played {
			fetches += v.played[n].bases[i].Fetches / float64(len(v.played))
		}
		v.Fetches = append(v.Fetches, fetches)
	}
	v.Ratio = Ratios{
		Low:     mean(func(p *played) float64 { return p.ours.Low / theirs(p).Low }),
		LowP99:  mean(func(p *played) float64 { return p.ours.LowP99 / theirs(p).LowP99 }),
		High:    mean(func(p *played) float64 { return p.ours.High / theirs(p).High }),
		HighP99: mean(func(p *played) float64 { return p.ours.HighP99 / theirs(p).HighP99 }),
		Time:    mean(func(p *played) float64 { return p.ours.Time / theirs(p).Time }),
	}
	for i := range v.played {
		p := &v.played[i]
		var tuned []string
		for _, c := range p.tuned {
			tuned = append(tuned, c.String())
		}
		v.Tuned, v.Best = append(v.Tuned, tuned), append(v.Best, tuned[p.chosen])
		v.Ours = v.Ours.plus(p.ours, 1/float64(len(v.played)))
		v.Theirs = v.Theirs.plus(theirs(p), 1/float64(len(v.played)))
	}
}
