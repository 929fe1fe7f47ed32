package main

import (
	"bytes"
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
	"example.org/pilotfish/pkg/selection"
)

type whatifCommand struct {
	Log       []string `arg:"" type:"existingfile" help:"Access logs: pilotfish's own, or CSV or JSON Lines with time, key and duration (lab/README.md)."`
	Present   string   `default:"least-in-flight" placeholder:"POLICY" help:"How jobs find their upstream today: least-in-flight, round-robin, random, bounded-hash, baseline (a hash) or another policy."`
	Upstreams int      `placeholder:"N" help:"How many there are today; otherwise those that the logs name."`
	Cores     int      `placeholder:"N" help:"How many jobs an upstream runs at one time; otherwise so many that jobs take as long as in the logs."`
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
	logs, err := trace.ReadLogs(c.Log...)
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
	a, err := c.answer(ctx, logs.Seen, logs.Jobs[:min(c.Jobs, len(logs.Jobs))])
	if err != nil {
		return err
	}
	if c.HTML != "" {
		var text bytes.Buffer
		if err := template.Must(template.New("").Parse(page)).Execute(&text, a); err != nil {
			return err
		}
		if err := os.WriteFile(c.HTML, text.Bytes(), 0o644); err != nil {
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
		one := *s
		one.Fleet.Upstreams = upstreams
		o, err := who.Play(ctx, &one, jobs, cache, 1)
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
	if c.Cores == 0 {
		most := seen.Peak
		if seen.Upstreams == 0 { // it is that of all
			most = (most + today - 1) / today
		}
		s.Fleet.Cores = atLeast(1, most, func(n int) bool {
			s.Fleet.Cores = n
			return play(present, today)[judge.Time] <= seen.Duration
		})
		why := "with so many, jobs take as long in the present way as the logs say"
		if s.Fleet.Cores == most {
			why = "it had no more at one time in the logs"
		}
		a.assume("An upstream runs %s at one time: %s (--cores).", plural(s.Fleet.Cores, "job"), why)
	}
	a.About = fmt.Sprintf("%s jobs over %s.", stats.Thousands(len(jobs)), stats.Span(jobs[len(jobs)-1].Offset))
	if seen.Hit > 0 {
		a.About += fmt.Sprintf(" In the logs %.0f %% found their key cached, and a job took %.3g s in the mean.", 100*float64(seen.Hits)/float64(seen.Hit), seen.Duration)
	}
	now, ours := play(present, today), play(pilotfish, today)
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
	s.Fleet.Cores = c.Cores
	s.Sidecars.Count, s.Sidecars.Hints = c.Sidecars, true
	s.WarmUp = time.Duration(jobs[len(jobs)-1].Offset / 10 * float64(time.Second))
	a.assume("Today jobs find their upstream by %s (--present).", c.Present)
	if c.Upstreams == 0 {
		a.assume("There are as many upstreams as the logs name: %d (--upstreams).", s.Fleet.Upstreams)
	}
	if seen.Hit == 0 {
		fetch := c.Fetch
		if fetch == 0 {
			var work []float64
			for i := range jobs {
				work = append(work, jobs[i].Operators)
			}
			slices.Sort(work)
			fetch = work[len(work)/2]
		}
		for i := range jobs {
			if jobs[i].Project != "" {
				jobs[i].Load = fetch
			}
		}
		a.assume("The logs do not say which jobs found their key cached. A job takes %.3g s longer where it is not (--fetch).", fetch)
	} else {
		a.assume("How much longer jobs take where their key is not cached is estimated from those that missed, key by key.")
	}
	if seen.Waits == 0 {
		a.assume("The logs do not say how long jobs waited: what a job costs is at most the first quartile of its key's durations.")
	}
	cache = 1 << 40
	low := slices.ContainsFunc(jobs, func(j trace.Job) bool { return j.Priority == selection.Low })
	for i := range jobs {
		if !low { // the waits that are printed are those of low jobs
			jobs[i].Priority = selection.Low
		}
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
