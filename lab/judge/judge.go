// Package judge compares pilotfish's policy with tuned rivals on settings that nobody has
// seen: the seeds of all draws come from a hash of the judged sources.
package judge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

const (
	// draws is how many settings are drawn of each family, each with so many seeds. One more seed tunes.
	draws = 3
	seeds = 2
)

// Judgement is what came of all families.
type Judgement struct {
	Hash     string
	Verdicts []Verdict
}

// Verdict is what came of one family, setting by setting.
type Verdict struct {
	Family
	played [draws]played
}

// played is what came of one setting.
type played struct {
	ours   Outcome
	queued Outcome // ours, where upstreams serve jobs by arrival
	bases  []Outcome
	tuned  []Contender
	chosen int // the base that is best where it was tuned
}

func (p *played) best() Outcome { return p.bases[p.chosen] }

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

// play tunes every base on a seed of its own, and plays all on the others.
func (f *Family) play(ctx context.Context, hash string, number int) (p played, err error) {
	s := f.draw(Seed(hash, f.Name, number))
	seed := Seed(hash, f.Name, number, "tuning")
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
	contenders := append(slices.Clone(p.tuned), Contender{Policy: "expected"}, Contender{Policy: "expected", Queued: true})
	all := make([]Outcome, len(contenders))
	for n := range seeds {
		seed := Seed(hash, f.Name, number, "judged", n)
		if jobs, cache, err = s.Jobs(seed); err != nil {
			return p, err
		}
		for i, c := range contenders {
			o, err := c.Play(ctx, s, jobs, cache, seed)
			if err != nil {
				return p, err
			}
			for figure := range o {
				all[i][figure] += o[figure] / seeds
			}
		}
	}
	p.bases, p.ours, p.queued = all[:len(p.tuned)], all[len(p.tuned)], all[len(p.tuned)+1]
	return p, nil
}

// mean is the mean of a figure over the settings.
func (v *Verdict) mean(of func(p *played) float64) (mean float64) {
	for i := range v.played {
		mean += of(&v.played[i]) / draws
	}
	return mean
}

// means are those of a figure: ours, that of the best base, and that of each base.
func (v *Verdict) means(figure int) []float64 {
	all := make([]float64, 2+len(bases()))
	for i := range v.played {
		p := &v.played[i]
		for n, o := range slices.Concat([]Outcome{p.ours, p.best()}, p.bases) {
			all[n] += o[figure] / draws
		}
	}
	return all
}

// ratio is the geometric mean over the settings of ours over a base's.
func (v *Verdict) ratio(figure int, base func(p *played) Outcome) float64 {
	return math.Exp(v.mean(func(p *played) float64 { return math.Log(p.ours[figure] / base(p)[figure]) }))
}

// ratios are geometric means over the settings, in the order of the table: the mean wait of low jobs over that
// with the base of each setting that waited least where it was tuned, and with each base; and the other
// figures over those of the first.
func (v *Verdict) ratios() (all []float64) {
	all = append(all, v.ratio(Low, (*played).best))
	for i := range bases() {
		all = append(all, v.ratio(Low, func(p *played) Outcome { return p.bases[i] }))
	}
	for figure := LowP99; figure <= Time; figure++ {
		all = append(all, v.ratio(figure, (*played).best))
	}
	return all
}

// Judged lists the directories whose sources are judged.
func Judged() []string {
	return []string{"pkg/selection", "internal/pool", "internal/breaker", "internal/ruleserver/order"}
}

// Hash is that of the judged sources below the repository's root, without their tests.
func Hash(root string) (string, error) {
	sum := sha256.New()
	for _, dir := range Judged() {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go")) // in order
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "", fmt.Errorf("%s: there is no source: is %s the repository?", filepath.Join(root, dir), root)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s/%s %d\n%s", dir, filepath.Base(file), len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// Seed is the seed of a draw, which its names tell from all others.
func Seed(names ...any) uint64 {
	sum := sha256.Sum256(fmt.Append(nil, names...))
	return binary.BigEndian.Uint64(sum[:]) >> 1
}
