package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/quality"
)

// Top shows how the upstreams of a sidecar serve its jobs.
type Top struct {
	adminPort
	Every time.Duration `default:"2s" help:"How often a terminal is drawn anew."`
	Rows  int           `default:"40" placeholder:"N" help:"How many upstreams are shown, the busiest first, and those that are not eligible before all."`
}

// shownNow is what top shows of /api/now.
type shownNow struct {
	At       time.Time
	NotReady string `json:"not_ready"`
	InFlight int    `json:"in_flight"`
	Waiting  int
	Fleet    struct {
		Mode     string
		Windows  []quality.Window
		Deadline *float64 `json:"deadline_in_seconds"`
	}
	Capacity  *capacity.Advice
	Upstreams []shownUpstream
}

type shownUpstream struct {
	Address, Why, Mode string
	Eligible           bool
	Jobs               float64
	InFlight           int `json:"in_flight"`
	Stalled            float64
	Wait               float64 `json:"wait_seconds"`
	Latency            float64 `json:"latency_seconds"`
	MinuteJobs         uint64  `json:"minute_jobs"`
	MinuteLost         uint64  `json:"minute_lost"`
	Rate               float64
	Cached             int     `json:"cached_projects"`
	ReportAge          float64 `json:"report_age_seconds"`
	Breaker            struct{ State string }
}

// Run shows the fleet's table: once, or on a terminal again and again until Ctrl-C.
func (c *Top) Run(s cli.Console) error {
	if c.Every < 100*time.Millisecond || c.Rows < 1 {
		return errors.New("--every must be at least 100ms, and --rows at least 1")
	}
	ctx, stop := cli.Context()
	defer stop()
	if !cli.IsTerminal(s.Out) {
		text, err := c.draw(ctx)
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.Out, text)
		return err
	}
	for {
		text, err := c.draw(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C is how it ends
		case err != nil:
			text = plain(err.Error()) + "\n"
		}
		// Home, each line to its end, and all below.
		fmt.Fprint(s.Out, "\x1b[H"+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
	}
}

// draw asks the sidecar, and writes what it says.
func (c *Top) draw(ctx context.Context) (string, error) {
	var now shownNow
	if err := c.get(ctx, "/api/now", nil, &now); err != nil {
		return "", err
	}
	if len(now.Fleet.Windows) == 0 {
		return "", fmt.Errorf("%s is no sidecar's admin port: it tells no windows", c.Admin)
	}
	var out strings.Builder
	now.writeFleet(&out)
	err := now.writeUpstreams(&out, c.Rows)
	return out.String(), err
}

func (n *shownNow) writeFleet(out io.Writer) {
	minute := n.Fleet.Windows[0]
	all := minute.All
	fmt.Fprintf(out, "%s  %s", n.At.Local().Format(time.TimeOnly), plain(n.Fleet.Mode))
	if n.Fleet.Deadline != nil {
		fmt.Fprintf(out, ", the first deadline passes in %s s", short(*n.Fleet.Deadline))
	}
	if n.NotReady != "" {
		fmt.Fprintf(out, ", takes no jobs: %s", plain(n.NotReady))
	}
	eligible := len(slices.DeleteFunc(slices.Clone(n.Upstreams), func(u shownUpstream) bool { return !u.Eligible }))
	fmt.Fprintf(out, "\n%s jobs/s, %d of %d complete in a minute, %d at upstreams, %d waiting, %d of %d upstreams eligible\n",
		short(float64(all.Jobs)/max(minute.Covered, 1)), all.Complete, all.Jobs, n.InFlight, n.Waiting, eligible, len(n.Upstreams))
	fmt.Fprintf(out, "first byte p50 %s s, p99 %s s; last byte p50 %s s, p99 %s s\n",
		short(all.FirstByte.P50), short(all.FirstByte.P99), short(all.LastByte.P50), short(all.LastByte.P99))
	if c := n.Capacity; c != nil {
		fmt.Fprintf(out, "%.0f %% full, %.0f %% in the busiest minute; %d upstreams would serve every job alike (%+d)\n",
			100*c.Now.Full, 100*c.Busiest.Full, c.Flat.Upstreams, c.Flat.Change)
	}
	fmt.Fprintln(out)
}

// writeUpstreams writes a row for each, and says how many are left out.
func (n *shownNow) writeUpstreams(out io.Writer, rows int) error {
	slices.SortStableFunc(n.Upstreams, func(a, b shownUpstream) int {
		if a.Eligible != b.Eligible {
			return map[bool]int{true: 1, false: -1}[a.Eligible]
		}
		return cmp.Compare(b.Jobs, a.Jobs)
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "jobs\town\tstalled\twait\tjobs/min\tlost/min\tfirst byte\trate\tcached\treport\tbreaker\tmode\tstate\tupstream\t\n")
	for _, u := range n.Upstreams[:min(rows, len(n.Upstreams))] {
		report, state := "none", "eligible"
		if u.ReportAge >= 0 {
			report = short(u.ReportAge) + " s"
		}
		if u.Why != "" {
			state = u.Why
		}
		wait := "unknown"
		if u.Wait >= 0 {
			wait = short(u.Wait) + " s"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%d\t%s s\t%s/s\t%d\t%s\t%s\t%s\t%s\t%s\t\n",
			short(u.Jobs), u.InFlight, short(u.Stalled), wait, u.MinuteJobs, u.MinuteLost, short(u.Latency), short(u.Rate), u.Cached,
			report, plain(u.Breaker.State), plain(u.Mode), plain(state), plain(u.Address))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if left := len(n.Upstreams) - rows; left > 0 {
		fmt.Fprintf(out, "and %d more; --rows shows them\n", left)
	}
	return nil
}
