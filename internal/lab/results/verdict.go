package results

import (
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/internal/lab/stats"
)

// leastWait is the shortest wait that Judge tells apart, in seconds. Nobody
// notices shorter ones, and the ratio of two of them says nothing.
const leastWait = 0.010

// Verdict compares one run of a family of workloads and fleets with the best of all others, its rivals.
type Verdict struct {
	Family string `json:"family"`
	// Run is the judged run, Rivals how many it was compared with.
	Run    string `json:"run"`
	Rivals int    `json:"rivals"`
	Seeds  int    `json:"seeds"`
	// Marks has one for each of MarkNames, in that order. Equals has the same
	// beside the rivals with as many sidecars alone, which know no more; it is
	// empty if there is none.
	Marks  []Mark `json:"marks"`
	Equals []Mark `json:"equals"`
	// Unanswered is how many of 1,000 jobs got no result, Fewest the least of any
	// rival.
	Unanswered float64 `json:"unanswered_per_1000_jobs"`
	Fewest     float64 `json:"least_unanswered_per_1000_jobs"`
}

// Mark is one number by which a run is judged.
type Mark struct {
	Name string `json:"name"`
	// Ours and Best are means over the seeds: of the judged run, and of the rival
	// that has the least. Times are in seconds.
	Ours  float64 `json:"ours"`
	Best  float64 `json:"best"`
	Rival string  `json:"rival"`
	// Ratio is Ours over Best; without an interval if there is only one seed.
	// Waits shorter than 10 ms count as 10 ms in it.
	Ratio stats.Interval `json:"ratio"`
}

// marker says what a mark is of a trial.
type marker struct {
	name  string
	least float64 // a smaller value counts as this
	of    func(*Trial) float64
}

// markers are the waits, and the mean durations, which hold the fetches as well.
// The number of fetches is judged apart.
func markers() []marker {
	return []marker{
		{"low wait", leastWait, func(t *Trial) float64 { return t.Summary(stats.Wait, "low").Mean }},
		{"low p99", leastWait, func(t *Trial) float64 { return t.Summary(stats.Wait, "low").P99 }},
		{"high wait", leastWait, func(t *Trial) float64 { return t.Summary(stats.Wait, "high").Mean }},
		{"high p99", leastWait, func(t *Trial) float64 { return t.Summary(stats.Wait, "high").P99 }},
		{"low time", leastWait, func(t *Trial) float64 { return t.Summary(stats.Duration, "low").Mean }},
		{"high time", leastWait, func(t *Trial) float64 { return t.Summary(stats.Duration, "high").Mean }},
	}
}

// fetches is the mark that is compared with the rival whose low jobs wait least:
// a run that never moves a project fetches least, and waits for ever.
func fetches() marker {
	return marker{"fetches", 1, func(t *Trial) float64 { return t.Counts.Fetches }}
}

// MarkNames are the marks of every verdict.
func MarkNames() []string {
	var names []string
	for _, m := range append(markers(), fetches()) {
		names = append(names, m.name)
	}
	return names
}

// Judge compares the first run of a set with all others. A trial without a pair
// in another run is left out.
func Judge(s *Set) Verdict {
	ours, rivals := &s.Runs[0], s.Runs[1:]
	v := Verdict{Family: s.Scenario, Run: ours.Name, Rivals: len(rivals), Seeds: len(ours.Trials), Unanswered: unanswered(ours.Counts)}
	v.Marks = marks(ours, rivals)
	var equals []Run
	for i := range rivals {
		if n := unanswered(rivals[i].Counts); i == 0 || n < v.Fewest {
			v.Fewest = n
		}
		if rivals[i].Sidecars == ours.Sidecars {
			equals = append(equals, rivals[i])
		}
	}
	if len(equals) > 0 {
		v.Equals = marks(ours, equals)
	}
	return v
}

// marks compares a run with the best of its rivals for each mark.
func marks(ours *Run, rivals []Run) []Mark {
	var all []Mark
	for _, m := range markers() {
		all = append(all, m.compare(ours, m.best(rivals)))
	}
	return append(all, fetches().compare(ours, markers()[0].best(rivals)))
}

// unanswered is how many of 1,000 jobs got no result.
func unanswered(c Counts) float64 {
	return 1000 * (c.Expired + c.Overrun + c.Lost + c.Unserved + c.Failed) / max(1, c.Jobs)
}

// best is the run with the least mean; nil if there is none.
func (m marker) best(runs []Run) *Run {
	var best *Run
	for i := range runs {
		if best == nil || m.mean(&runs[i]) < m.mean(best) {
			best = &runs[i]
		}
	}
	return best
}

func (m marker) mean(r *Run) float64 {
	sum := 0.0
	for i := range r.Trials {
		sum += max(m.least, m.of(&r.Trials[i]))
	}
	return sum / float64(len(r.Trials))
}

// compare compares a run with its best rival, seed by seed.
func (m marker) compare(ours, rival *Run) Mark {
	mark := Mark{Name: m.name}
	if rival == nil {
		return mark
	}
	mark.Rival = rival.Name
	theirs, own := Pairs(rival, ours, m.of)
	if len(own) == 0 {
		return mark
	}
	mark.Ours, mark.Best = mean(own), mean(theirs)
	for i := range own {
		own[i], theirs[i] = max(m.least, own[i]), max(m.least, theirs[i])
	}
	if len(own) == 1 {
		mark.Ratio = stats.Interval{Value: own[0] / theirs[0]}
		return mark
	}
	// Each mark has a random source of its own, so that it does not depend on the
	// others. The rival's values are positive.
	mark.Ratio, _ = stats.Ratio(theirs, own, rand.New(rand.NewPCG(1, 1)))
	return mark
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Judgement is what came of all families.
type Judgement struct {
	Verdicts []Verdict `json:"families"`
	// Summary is over the marks beside all rivals, Equals beside those with as
	// many sidecars.
	Summary []Summary `json:"summary"`
	Equals  []Summary `json:"summary_equals"`
}

// Summary is one mark over all families.
type Summary struct {
	Mark   string  `json:"mark"`
	Median float64 `json:"median_ratio"`
	Worst  float64 `json:"worst_ratio"`
	// Limit is what the ratio should not exceed, Above the families where it does.
	Limit float64  `json:"limit"`
	Above []string `json:"above"`
}

// The ratios that are not to be exceeded in any family.
const (
	waitLimit  = 1.1
	fetchLimit = 1.3
)

// Sum sums verdicts up.
func Sum(verdicts []Verdict) Judgement {
	return Judgement{
		Verdicts: verdicts,
		Summary:  summarize(verdicts, func(v *Verdict) []Mark { return v.Marks }),
		Equals:   summarize(verdicts, func(v *Verdict) []Mark { return v.Equals }),
	}
}

// summarize sums up the same marks of all verdicts that have them.
func summarize(verdicts []Verdict, of func(*Verdict) []Mark) []Summary {
	var all []Summary
	for i, name := range MarkNames() {
		s := Summary{Mark: name, Limit: waitLimit, Above: []string{}}
		if name == fetches().name {
			s.Limit = fetchLimit
		}
		var ratios []float64
		for j := range verdicts {
			marks := of(&verdicts[j])
			if len(marks) == 0 {
				continue
			}
			ratio := marks[i].Ratio.Value
			ratios = append(ratios, ratio)
			if ratio > s.Limit {
				s.Above = append(s.Above, verdicts[j].Family)
			}
		}
		if len(ratios) == 0 {
			return nil
		}
		s.Median, s.Worst = median(ratios), slices.Max(ratios)
		all = append(all, s)
	}
	return all
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
