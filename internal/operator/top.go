package operator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/quality"
)

// Top shows how the upstreams of a sidecar serve its jobs.
type Top struct {
	adminPort
	Every time.Duration `default:"2s" help:"How often a terminal is drawn anew."`
	Rows  int           `default:"40" placeholder:"N" help:"How many upstreams are shown: first those that are not eligible or at which attempts fail, then the busiest."`
}

// Run shows the fleet's table: once, or on a terminal again and again until Ctrl-C.
func (c *Top) Run(s cli.Console) error {
	if c.Every < 100*time.Millisecond || c.Rows < 1 {
		return errors.New("--every must be at least 100ms, and --rows at least 1")
	}
	if !cli.IsTerminal(s.Out) {
		text, err := c.draw()
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.Out, text)
		return err
	}
	ctx, stop := cli.Context()
	defer stop()
	for ctx.Err() == nil { // Ctrl-C is how it ends
		text, err := c.draw()
		if err != nil {
			text = cli.Plain(err.Error()) + "\n"
		}
		// Home, each line to its end, and all below.
		fmt.Fprint(s.Out, "\x1b[H"+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
		select {
		case <-ctx.Done():
		case <-time.After(c.Every):
		}
	}
	return nil
}

// draw asks the sidecar, and writes what it says.
func (c *Top) draw() (string, error) {
	var now admin.Now
	if err := c.ask(http.MethodGet, "/api/now", nil, &now); err != nil {
		return "", err
	}
	if len(now.Fleet.Windows) == 0 {
		return "", fmt.Errorf("%s is no sidecar's admin port: its reply has no windows", c.Admin)
	}
	var out strings.Builder
	writeFleet(&out, &now)
	writeUpstreams(&out, now.Upstreams, c.Rows)
	return out.String(), nil
}

func writeFleet(out *strings.Builder, n *admin.Now) {
	minute := n.Fleet.Windows[0]
	all := minute.All
	fmt.Fprintf(out, "%s  %s", n.At.Local().Format(time.TimeOnly), cli.Plain(string(n.Fleet.Mode)))
	if after := n.Fleet.DeadlineSeconds; after != nil {
		fmt.Fprintf(out, ", the first job fails in %s s if times rise on", short(*after))
	}
	if n.NotReady != "" {
		fmt.Fprintf(out, ", takes no jobs: %s", cli.Plain(n.NotReady))
	}
	if n.Panic {
		fmt.Fprint(out, ", panic: every breaker is open, so jobs go to all upstreams")
	}
	fmt.Fprintf(out, "\n%s jobs/s; of %d in a minute %d complete, %d failed, %d lost; %d at upstreams, %d waiting; %d of %d upstreams eligible\n",
		short(float64(all.Jobs)/max(minute.Covered, 1)), all.Jobs, all.Complete, all.Failed, all.Partial+all.Absent,
		n.InFlight, n.Waiting, n.Eligible(), len(n.Upstreams))
	if all.Limited > 0 {
		fmt.Fprintf(out, "%d more limited: refused because their project was at its limit\n", all.Limited)
	}
	fmt.Fprintf(out, "first byte p50 %s, p99 %s; last byte p50 %s, p99 %s\n",
		measured(all.FirstByte.P50, " s"), measured(all.FirstByte.P99, " s"), measured(all.LastByte.P50, " s"), measured(all.LastByte.P99, " s"))
	if c := n.Capacity; c != nil {
		fmt.Fprintf(out, "%.0f %% full, %.0f %% in the busiest minute; %d upstreams would serve every job at once (%+d)",
			100*c.Full, 100*c.FullBusiest, c.Needed, c.Needed-c.Upstreams)
		if c.ForTarget != nil {
			fmt.Fprintf(out, ", %d would keep the target", *c.ForTarget)
		}
		if c.CostPerJob != nil {
			fmt.Fprintf(out, "; a job costs %s", short(*c.CostPerJob))
		}
		fmt.Fprintln(out)
	}
	if n.InFlight+n.Waiting+int(all.Jobs) == 0 && len(n.Upstreams) > 0 && n.Eligible() == len(n.Upstreams) {
		fmt.Fprintln(out, "healthy and idle: every upstream is eligible, and no job arrived in a minute")
	}
	fmt.Fprintln(out)
}

// columns are those of the table of upstreams.
var columns = []struct {
	title string
	text  func(u *quality.Upstream) string
}{
	{"jobs", func(u *quality.Upstream) string { return short(u.Jobs) }},
	{"own", func(u *quality.Upstream) string { return fmt.Sprint(u.InFlight) }},
	{"stalled", func(u *quality.Upstream) string { return short(u.Stalled) }},
	{"wait", func(u *quality.Upstream) string { return known(u.Wait, "unknown") }},
	{"attempts/min", func(u *quality.Upstream) string { return fmt.Sprint(u.MinuteAttempts) }},
	{"failed/min", func(u *quality.Upstream) string { return fmt.Sprint(u.MinuteFailed) }},
	{"first byte", func(u *quality.Upstream) string { return measured(u.Latency, " s") }},
	{"rate", func(u *quality.Upstream) string { return measured(u.Rate, "/s") }},
	{"cached", func(u *quality.Upstream) string { return fmt.Sprint(u.Cached) }},
	{"report", func(u *quality.Upstream) string { return known(u.ReportAge, "none") }},
	{"mode", func(u *quality.Upstream) string { return cli.Plain(string(u.Mode)) }},
	{"state", func(u *quality.Upstream) string { return cmp.Or(cli.Plain(u.Why), cli.Plain(u.Slow), "eligible") }},
	{"upstream", func(u *quality.Upstream) string { return cli.Plain(u.Address) }},
}

// known is a number of seconds, or a word where it is negative.
func known(seconds float64, otherwise string) string {
	if seconds < 0 {
		return otherwise
	}
	return short(seconds) + " s"
}

// measured is a number with its unit, or a word where there is none yet.
func measured(x float64, unit string) string {
	if x == 0 {
		return "unknown"
	}
	return short(x) + unit
}

// writeUpstreams writes a row for each, and says how many are left out. Those that need
// somebody to look come first, and then the busiest.
func writeUpstreams(out *strings.Builder, upstreams []quality.Upstream, rows int) {
	rank := func(u *quality.Upstream) int {
		switch {
		case !u.Eligible:
			return 0
		case u.MinuteFailed > 0:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(upstreams, func(a, b quality.Upstream) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Jobs, a.Jobs))
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range columns {
		fmt.Fprint(w, c.title, "\t")
	}
	fmt.Fprintln(w)
	for i := range upstreams[:min(rows, len(upstreams))] {
		for _, c := range columns {
			fmt.Fprint(w, c.text(&upstreams[i]), "\t")
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // a builder takes all
	if left := len(upstreams) - rows; left > 0 {
		fmt.Fprintf(out, "and %d more; --rows shows them\n", left)
	}
}
