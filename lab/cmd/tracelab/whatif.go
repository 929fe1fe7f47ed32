package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
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
	Key       string   `placeholder:"REGEXP" help:"A regular expression whose first group is the key of a line without a field key, as in 'project=([^& ]+)'."`
	Present   string   `default:"least-in-flight" placeholder:"POLICY" help:"The present policy: least-in-flight, round-robin, random, bounded-hash, baseline (a hash) or another one."`
	Upstreams int      `placeholder:"N" help:"The present number of upstreams; by default the number in the logs."`
	Cores     int      `placeholder:"N" help:"Number of jobs that an upstream runs at a time; by default estimated from the logs."`
	Fetch     float64  `placeholder:"SECONDS" help:"Additional duration of a job on a cache miss, if the logs do not contain hits."`
	Cached    int      `placeholder:"N" help:"Number of keys in an upstream's cache; by default all."`
	Sidecars  int      `default:"3" placeholder:"N" help:"Number of proxies, each with a part of the jobs."`
	Jobs      int      `default:"100000" placeholder:"N" help:"Maximum number of jobs to simulate."`
	HTML      string   `name:"html" type:"path" placeholder:"FILE" help:"Write an HTML page."`
}

// answer is the command's output.
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
	key, err := c.key()
	if err != nil {
		return err
	}
	logs, err := trace.ReadLogs(max(1, c.Jobs), key, c.Log...)
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
		return errors.New("the logs name no upstream: set their number with --upstreams")
	}
	a := &answer{Heads: []string{"", "hits", "mean wait, s", "p99 wait, s", "mean time, s"}}
	span := logs.Span()
	if cut := logs.Shorten(longestPause); cut > 0 {
		a.assume("Pauses without a job are shortened to %v s: by %s in total.", longestPause, stats.Span(cut))
	}
	one := c.Upstreams // logs without upstreams look like the log of one large upstream
	if logs.Seen.Upstreams > 0 {
		one = 1
	}
	jobs := logs.Estimate(c.Cores*one, c.Fetch)
	logs.Seen.Cores = (logs.Seen.Cores + one - 1) / one
	a.About = fmt.Sprintf("%s jobs over %s.", stats.Thousands(len(jobs)), stats.Span(span))
	if seen := logs.Seen; seen.Hit > 0 {
		a.About += fmt.Sprintf(" In the logs %.0f %% of them hit the cache, and the mean duration is %.3g s.", 100*float64(seen.Hits)/float64(seen.Hit), seen.Duration)
	}
	if err := c.answer(ctx, a, logs.Seen, jobs); err != nil {
		return err
	}
	if err := writePage(c.HTML, func(w io.Writer) error { return template.Must(template.New("").Parse(page)).Execute(w, a) }); err != nil {
		return err
	}
	return a.writeText(console.Out)
}

// key compiles --key; nil without one.
func (c *whatifCommand) key() (*regexp.Regexp, error) {
	if c.Key == "" {
		return nil, nil
	}
	key, err := regexp.Compile(c.Key)
	if err == nil && key.NumSubexp() == 0 {
		err = errors.New("it has no group in parentheses to match the key")
	}
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	return key, nil
}

// longestPause bounds a period without a job, in seconds: two polling intervals.
const longestPause = 10.0

// answer simulates the jobs with the present policy and with pilotfish, and searches the smallest numbers of upstreams
// with the same waits. Its summary is UNSURE if an assumption could change the result.
func (c *whatifCommand) answer(ctx context.Context, a *answer, seen trace.Seen, jobs []trace.Job) error {
	r := c.rig(ctx, a, seen, jobs)
	today := r.setting.Fleet.Upstreams
	if c.Cached == 0 && seen.Hit > 0 {
		r.fitCache(a, seen)
	}
	percent := r.fitCosts(seen.Duration)
	now, ours := r.play(r.present, today), r.play(pilotfish, today)
	a.assume("Costs of jobs are scaled to %d %%, so that the present policy has the mean duration of the logs: %.3g s, in the logs %.3g s.", percent, now[judge.Time], seen.Duration)
	a.row(fmt.Sprintf("%v, %s", r.present, cli.Count(today, "upstream")), now)
	a.row("pilotfish, "+cli.Count(today, "upstream"), ours)
	unsure := r.doubts(c, seen, now, ours)
	if r.failed != nil {
		return r.failed
	}
	if len(unsure) > 0 {
		a.Sum = "UNSURE: " + strings.Join(unsure, " ")
		return nil
	}
	need, theirs, same := r.fewest(pilotfish, now, today), r.fewest(r.present, now, today), r.fewest(r.present, ours, 2*today+1)
	if need < today {
		a.row("pilotfish, "+cli.Count(need, "upstream"), r.play(pilotfish, need))
	}
	more := fmt.Sprint(same)
	if same > 2*today {
		more = fmt.Sprintf("more than %d", 2*today)
	}
	a.assume("Waits count as equal if they differ by at most %.0f %% of the mean duration.", 100*tolerance)
	a.Sum = fmt.Sprintf("Upstreams needed for today's waits: %d with the present policy, %d with pilotfish. For pilotfish's waits with %s, the present policy needs %s.",
		theirs, need, cli.Count(today, "upstream"), more)
	if theirs < today {
		a.Sum += fmt.Sprintf(" The fleet of %d is oversized.", today)
	}
	return r.failed
}

// rig sets up the present fleet. It lists what is assumed because the logs do not contain it.
func (c *whatifCommand) rig(ctx context.Context, a *answer, seen trace.Seen, jobs []trace.Job) *rig {
	s := &judge.Setting{Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars()}
	s.Fleet.Upstreams = cmp.Or(c.Upstreams, seen.Upstreams)
	s.Fleet.Cores = seen.Cores
	s.Sidecars.Count, s.Sidecars.Hints = c.Sidecars, true
	s.WarmUp = trace.Duration(jobs[len(jobs)/10].Offset)
	a.assume("The present policy is %s (--present).", c.Present)
	if c.Upstreams == 0 {
		a.assume("There are as many upstreams as the logs name: %d (--upstreams).", s.Fleet.Upstreams)
	}
	if seen.Fetch > 0 {
		a.assume("The logs contain no cache miss. A miss takes %.3g s longer (--fetch).", seen.Fetch)
	} else {
		a.assume("How much longer a job takes on a cache miss is estimated for each key.")
	}
	a.assume("Waits that are not in the logs are estimated: upstreams are first come, first served.")
	if c.Cores == 0 {
		a.assume("An upstream runs %s at a time: %s (--cores).", cli.Count(seen.Cores, "job"),
			map[bool]string{false: "this fits the logs best", true: "a guess, often too high, because the logs name no upstream"}[seen.Upstreams == 0])
	}
	a.assume("%s reached no upstream, ended out of order, or arrived during a fetch of their key: their cost is the usual cost of their key.", cli.Count(seen.Unlike, "job"))
	a.assume("Jobs share only their key's data. Waits and durations below 10 ms count as 10 ms.")
	for i := range jobs {
		jobs[i].Bytes = 1
	}
	r := &rig{ctx: ctx, setting: s, jobs: jobs, costs: slices.Clone(jobs), cache: int64(c.Cached)}
	r.present = judge.Contender{Policy: c.Present, Limit: map[string]float64{"bounded-hash": 1.5}[c.Present]}
	if c.Cached == 0 {
		r.cache = int64(seen.Keys)
		if seen.Hit == 0 {
			a.assume("An upstream's cache holds all keys (--cached).")
		}
	}
	a.assume("Upstreams send load hints and list their caches. All keys have the same size; the least recently used is evicted first.")
	a.assume("There are %d proxies, now and with pilotfish (--sidecars). The first tenth of the jobs fills the caches and does not count.", c.Sidecars)
	reports := jobs[len(jobs)-1].Offset / s.Sidecars.Interval.Seconds() * float64(s.Fleet.Upstreams*c.Sidecars)
	if reports > mostReports {
		s.Sidecars.Interval = trace.Duration(s.Sidecars.Interval.Seconds() * reports / mostReports)
		a.assume("Upstreams report only every %v, because the log is long.", s.Sidecars.Interval.Round(time.Second))
	}
	return r
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
