package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/judge"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
)

type whatifCommand struct {
	Log       []string `arg:"" type:"existingfile" help:"Access logs: pilotfish's own, or CSV or JSON Lines with time, key and duration (lab/README.md)."`
	Present   string   `default:"least-in-flight" placeholder:"POLICY" help:"How jobs find their upstream today: least-in-flight, round-robin, random, bounded-hash, baseline (a hash) or another policy."`
	Upstreams int      `placeholder:"N" help:"How many there are today; otherwise those that the logs name."`
	Cores     int      `placeholder:"N" help:"How many jobs an upstream runs at one time; otherwise the number that fits the logs best."`
	Fetch     float64  `placeholder:"SECONDS" help:"How much longer a job takes where its key is not cached, if the logs do not say which found theirs."`
	Cached    int      `placeholder:"N" help:"How many keys an upstream's cache holds; otherwise all."`
	Sidecars  int      `default:"3" placeholder:"N" help:"How many processes choose, each for a part of the jobs."`
	Jobs      int      `default:"100000" placeholder:"N" help:"How many jobs are played at most."`
	HTML      string   `name:"html" type:"path" placeholder:"FILE" help:"Write a page."`
}

// answer is what a person reads.
type answer struct {
	About, Sum string
	Heads      []string
	Rows       [][]string
	Assumed    []string
}

//go:embed whatif.html
var page string

func (c *whatifCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	logs, err := trace.ReadLogs(max(1, c.Jobs), c.Log...)
	if err != nil {
		return err
	}
	fmt.Fprintln(console.Err, strings.Join(logs.Notes, "\n"))
	switch {
	case !slices.Contains(rivals.All(), c.Present):
		return fmt.Errorf("--present %q is not one of %s", c.Present, strings.Join(rivals.All(), ", "))
	case c.Sidecars < 1 || c.Jobs < 1 || c.Upstreams < 0 || c.Cores < 0 || c.Cached < 0 || !(c.Fetch >= 0 && c.Fetch <= trace.MaxSeconds):
		return errors.New("--sidecars and --jobs must be above 0; --upstreams, --cores, --cached and --fetch must not be negative")
	case c.Upstreams == 0 && logs.Seen.Upstreams == 0:
		return errors.New("the logs name no upstream: say how many there are with --upstreams")
	}
	one := c.Upstreams // the logs see the jobs of so many as those of one
	if logs.Seen.Upstreams > 0 {
		one = 1
	}
	jobs := logs.Estimate(c.Cores*one, c.Fetch)
	logs.Seen.Cores = (logs.Seen.Cores + one - 1) / one
	a, err := c.answer(ctx, logs.Seen, jobs)
	if err != nil {
		return err
	}
	if c.HTML != "" {
		file, err := os.Create(c.HTML)
		if err == nil {
			err = errors.Join(template.Must(template.New("").Parse(page)).Execute(file, a), file.Close())
		}
		if err != nil {
			return err
		}
	}
	return a.writeText(console.Out)
}

// answer plays the jobs in the present way and with pilotfish, and looks for the fewest
// upstreams with which jobs wait no longer.
func (c *whatifCommand) answer(ctx context.Context, seen trace.Seen, jobs []trace.Job) (*answer, error) {
	a := &answer{Heads: []string{"", "hits", "mean wait, s", "p99 wait, s", "mean time, s"}}
	s, cache := c.setting(a, seen, jobs)
	today := s.Fleet.Upstreams
	present := judge.Contender{Policy: c.Present, Limit: map[string]float64{"bounded-hash": 1.5}[c.Present]}
	pilotfish := judge.Contender{Policy: "expected"}
	var failed error
	play := func(who judge.Contender, upstreams int) judge.Outcome {
		s.Fleet.Upstreams = upstreams
		o, err := who.Play(ctx, s, jobs, cache, 1)
		failed = cmp.Or(failed, err)
		return o
	}
	// fewest searches the least number of upstreams with which jobs wait and take no longer than the goal's.
	fewest := func(who judge.Contender, goal judge.Outcome, low, high int) int {
		return atLeast(low, high, func(n int) bool {
			o, compared := play(who, n), []int{judge.Unanswered, judge.Low, judge.LowP99, judge.Time}
			return !slices.ContainsFunc(compared, func(figure int) bool { return o[figure] > goal[figure] })
		})
	}
	costs := slices.Clone(jobs)
	scale := func(percent int) judge.Outcome {
		for i := range jobs {
			jobs[i].Load, jobs[i].Operators = costs[i].Load*float64(percent)/100, costs[i].Operators*float64(percent)/100
		}
		return play(present, today)
	}
	percent := atLeast(70, 100, func(n int) bool { return scale(n)[judge.Time] >= seen.Duration })
	now, ours := scale(percent), play(pilotfish, today)
	a.assume("What jobs cost counts %d %%, so that they take as long in the present way as in the logs: %.3g s, and there %.3g s.", percent, now[judge.Time], seen.Duration)
	if ratio := now[judge.Time] / max(0.01, seen.Duration); seen.Wait > seen.Duration/4 || !(ratio > 0.67 && ratio < 1.5) {
		a.assume("UNSURE: in the logs jobs waited %.3g s, a good part of their time, or the present way is another. Small errors in what jobs cost make large ones in long waits.", seen.Wait)
	}
	a.About = fmt.Sprintf("%s jobs over %s.", stats.Thousands(len(jobs)), stats.Span(jobs[len(jobs)-1].Offset))
	if seen.Hit > 0 {
		a.About += fmt.Sprintf(" In the logs %.0f %% found their key cached, and a job took %.3g s in the mean.", 100*float64(seen.Hits)/float64(seen.Hit), seen.Duration)
	}
	need, theirs := fewest(pilotfish, now, 1, today), fewest(present, ours, today, 2*today+1)
	a.row(fmt.Sprintf("%v, %s", present, plural(today, "upstream")), now)
	a.row("pilotfish, "+plural(today, "upstream"), ours)
	if need < today {
		a.row("pilotfish, "+plural(need, "upstream"), play(pilotfish, need))
	}
	more := fmt.Sprint(theirs)
	if theirs > 2*today {
		more = fmt.Sprintf("more than %d", 2*today)
	}
	a.Sum = fmt.Sprintf("Upstreams needed for the waits of today: %d in the present way, %d with pilotfish. For pilotfish's waits with %s, the present way needs %s.",
		today, need, plural(today, "upstream"), more)
	return a, failed
}

func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// atLeast is the least number that does; high, if none below it does.
func atLeast(low, high int, does func(int) bool) int {
	return low + sort.Search(max(0, high-low), func(n int) bool { return does(low + n) })
}

// setting is the fleet of today. What the logs do not say is assumed, and said so.
func (c *whatifCommand) setting(a *answer, seen trace.Seen, jobs []trace.Job) (s *judge.Setting, cache int64) {
	s = &judge.Setting{Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars()}
	s.Fleet.Upstreams = cmp.Or(c.Upstreams, seen.Upstreams)
	s.Fleet.Cores = seen.Cores
	s.Sidecars.Count, s.Sidecars.Hints = c.Sidecars, true
	s.WarmUp = time.Duration(jobs[len(jobs)-1].Offset / 10 * float64(time.Second))
	a.assume("Today jobs find their upstream by %s (--present).", c.Present)
	if c.Upstreams == 0 {
		a.assume("There are as many upstreams as the logs name: %d (--upstreams).", s.Fleet.Upstreams)
	}
	if seen.Fetch > 0 {
		a.assume("The logs show no job that did not find its key cached. It takes %.3g s longer (--fetch).", seen.Fetch)
	} else {
		a.assume("How much longer jobs take where their key is not cached is estimated from those that missed, key by key.")
	}
	a.assume("Waits that the logs do not say are rebuilt: an upstream runs jobs first come first served.")
	if c.Cores == 0 {
		a.assume("An upstream runs %s at one time: %s (--cores).", plural(seen.Cores, "job"),
			map[bool]string{false: "this fits the logs best", true: "a guess, and often too many, because the logs name no upstream"}[seen.Upstreams == 0])
	}
	a.assume("%s reached no upstream, ended before their turn, or came while their key was fetched: they cost what others of their key do.", plural(seen.Unlike, "job"))
	a.assume("Jobs share nothing but their key's data. Waits and times below 10 ms count as 10 ms.")
	cache = 1 << 40
	for i := range jobs {
		jobs[i].Bytes = 1
	}
	if c.Cached > 0 {
		cache = int64(c.Cached)
	} else {
		a.assume("An upstream's cache holds all keys (--cached).")
	}
	a.assume("Upstreams send load hints and list what they have cached, all keys of equal size, and the oldest is evicted first.")
	a.assume("%d processes choose, today and with pilotfish (--sidecars). The first tenth of the time fills the caches, and does not count.", c.Sidecars)
	return s, cache
}

func (a *answer) assume(format string, args ...any) {
	a.Assumed = append(a.Assumed, fmt.Sprintf(format, args...))
}

func (a *answer) row(name string, o judge.Outcome) {
	row := []string{name, fmt.Sprintf("%.1f %%", 100-o[judge.Fetches]/10)}
	for _, figure := range []int{judge.Low, judge.LowP99, judge.Time} {
		row = append(row, fmt.Sprintf("%.2f", o[figure]))
	}
	a.Rows = append(a.Rows, row)
}

func (a *answer) writeText(w io.Writer) error {
	g := stats.Grid{Title: a.About + "\n", Left: 1, Heads: [][]string{a.Heads}, Rows: a.Rows}
	if err := g.WriteText(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n\nAssumed:\n- %s\n", a.Sum, strings.Join(a.Assumed, "\n- "))
	return err
}
