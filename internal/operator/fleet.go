package operator

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/quality"
)

func writeFleet(out *strings.Builder, n *admin.Now) {
	minute := n.Fleet.Windows[0]
	all := minute.All
	line := func(format string, args ...any) { out.WriteString(wrap(fmt.Sprintf(format, args...), 2)) }
	state := n.At.Local().Format(time.TimeOnly) + " " + cli.Plain(string(n.Fleet.Mode))
	if n.Fleet.Text != "" { // an older sidecar sends none
		state += ": " + cli.Plain(n.Fleet.Text)
	}
	if after := n.Fleet.DeadlineSeconds; after != nil {
		state += fmt.Sprintf(", the first job fails in %s s if times rise on", short(*after))
	}
	if n.NotReady != "" {
		state += "; takes no jobs: " + cli.Plain(n.NotReady)
	}
	line("%s", state)
	for _, warning := range n.Warnings {
		line("%s", cli.Plain(warning))
	}
	line("%s jobs/s; of %d in a minute %d complete, %d failed, %d lost; %d at upstreams, %d waiting; %d of %d upstreams eligible",
		short(float64(all.Jobs)/max(minute.Covered, 1)), all.Jobs, all.Complete, all.Failed, all.Partial+all.Absent,
		n.InFlight, n.Waiting, n.Eligible(), len(n.Upstreams))
	if all.Limited > 0 {
		line("%d more limited: refused because their project was at its limit", all.Limited)
	}
	if d := all.Data; d.Jobs > 0 {
		shadow := ""
		if n.Shadow != "" {
			shadow = fmt.Sprintf("; %s had it where %s would have sent them", share(d.ShadowFound, d.Shadowed), cli.Plain(n.Shadow))
		}
		line("%s of the jobs found their data%s", share(d.Found, d.Jobs), shadow)
	} else if all.Complete > 0 {
		line("no job names a project, so caching plays no part: set job.project to its place in requests")
	}
	line("first byte p50 %s, p99 %s; last byte p50 %s, p99 %s",
		measured(all.FirstByte.P50), measured(all.FirstByte.P99), measured(all.LastByte.P50), measured(all.LastByte.P99))
	if c := n.Capacity; c != nil {
		advice := fmt.Sprintf("%.0f %% full, %.0f %% in the busiest minute; %s would serve every job at once (%s)",
			100*c.Full, 100*c.FullBusiest, cli.Count(c.Needed, "upstream"), change(c.Needed-c.Upstreams))
		if c.NeverFull {
			advice = fmt.Sprintf("the queue did not grow with %s jobs at the upstreams at one time; how many they can process is unknown, because they report no cores", short(c.Cores))
		}
		if c.ForTarget != nil {
			advice += fmt.Sprintf(", %d would keep the target", *c.ForTarget)
		}
		if c.CostPerJob != nil {
			advice += fmt.Sprintf("; a job costs %s", short(*c.CostPerJob))
		}
		line("%s", advice)
		if len(c.ProjectCosts) > 0 {
			line("cost in the last hour: %s", costsOf(c.ProjectCosts))
		}
	}
	if len(n.Warnings) == 0 && n.InFlight+n.Waiting+int(all.Jobs) == 0 && len(n.Upstreams) > 0 && n.Eligible() == len(n.Upstreams) {
		line("healthy and idle: every upstream is eligible, and no job arrived in a minute")
	}
	fmt.Fprintln(out)
}

// costsOf lists the projects with the highest costs, and the sum of the others.
func costsOf(list []quality.ProjectCost) string {
	const most = 4
	var all []string
	others := 0.0
	for i, c := range list {
		if name := cmp.Or(cli.Plain(c.Project), "no project"); i < most && !c.Rest {
			all = append(all, fmt.Sprintf("%s %s (%s)", name, short(c.Cost), cli.Count(int(c.Jobs), "job")))
			continue
		}
		others += c.Cost
	}
	if others > 0 {
		all = append(all, "all others "+short(others))
	}
	return strings.Join(all, ", ")
}

// change describes the difference to the number of upstreams that there are.
func change(n int) string {
	switch {
	case n > 0:
		return fmt.Sprintf("%d more than now", n)
	case n < 0:
		return fmt.Sprintf("%d fewer than now", -n)
	}
	return "as many as now"
}

// share formats part/all in percent, rounded down.
func share(part, all uint64) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", 100*part/all)
}

// known formats a number of seconds; a negative one is unknown.
func known(seconds float64) string {
	if seconds < 0 {
		return "–"
	}
	return short(seconds) + " s"
}

// measured formats a measured number of seconds; 0 means that it is unknown.
func measured(seconds float64) string {
	if seconds == 0 {
		return "unknown"
	}
	return short(seconds) + " s"
}
