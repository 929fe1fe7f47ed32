package page

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/lab/stats"
)

// Advice writes what a fleet can do and needs: for people, or as JSON.
func Advice(w io.Writer, a capacity.Advice, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(a)
	}
	_, err := fmt.Fprintf(w, "%d upstreams with %.0f cores can do %.2f jobs/s of %.3f core-seconds each. Told by %s.\n\n",
		a.Upstreams, a.Cores, a.JobsPerSecond, a.CoreSecondsPerJob, stats.Span(a.CoveredSeconds))
	if err != nil {
		return err
	}
	g := &stats.Grid{Left: 1, Heads: [][]string{{"the fleet", "upstreams", "change", "full", "jobs/s", "first byte at worst"}}}
	fill := func(name string, f capacity.Fill) {
		g.Rows = append(g.Rows, []string{name, fmt.Sprint(a.Upstreams), "", fmt.Sprintf("%.0f %%", 100*f.Full), fmt.Sprintf("%.2f", f.JobsPerSecond), ""})
	}
	need := func(name string, n capacity.Need) {
		g.Rows = append(g.Rows, []string{
			name, fmt.Sprint(n.Upstreams), fmt.Sprintf("%+d", n.Change), fmt.Sprintf("%.0f %%", 100*n.Full),
			fmt.Sprintf("%.2f", a.Busiest.JobsPerSecond), fmt.Sprintf("%.2f s", n.FirstByteSeconds),
		})
	}
	fill("in the last minute", a.Now)
	fill("in the busiest minute, from "+stats.Span(a.Busiest.Seconds)+" on", a.Busiest)
	need("that serves every job alike (mode 1)", a.Flat)
	if a.Bounded != nil {
		need(fmt.Sprintf("with a first byte within %v (mode 2)", time.Duration(a.BoundSeconds*float64(time.Second))), *a.Bounded)
	}
	return g.WriteText(w)
}
