package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/pkg/selection"
)

// Explain says where a job would go, and why. Nothing is sent.
type Explain struct {
	adminPort
	Project  string `placeholder:"ID" help:"The job's project; none by default."`
	Priority string `default:"low" enum:"low,high" placeholder:"PRIORITY" help:"Its priority: low or high."`
}

// Run asks for the costs of all upstreams, and shows them.
func (c *Explain) Run(s cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	var pick struct {
		Upstream string
		Ranking  []struct {
			Address, Cache string
			Jobs           float64
			Cost           *selection.Cost
		}
	}
	if err := c.get(ctx, "/api/pick", url.Values{"project": {c.Project}, "priority": {c.Priority}}, &pick); err != nil {
		return errors.Join(err, c.leftOut(ctx, s))
	}
	of := "a job without a project"
	if c.Project != "" {
		of = "a job of project " + plain(c.Project)
	}
	fmt.Fprintf(s.Out, "%s, priority %s, would go to %s\n\n", of, c.Priority, plain(pick.Upstream))
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "cost\twait\tfetch\tplacement\tstop\tjobs\tcache\tupstream\t\n")
	for _, r := range pick.Ranking {
		cost := "–\t–\t–\t–\t–"
		if c := r.Cost; c != nil {
			cost = strings.Join([]string{short(c.Total), short(c.Wait), short(c.Fetch), short(c.Placement), short(c.Stop)}, "\t")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", cost, short(r.Jobs), plain(r.Cache), plain(r.Address))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(s.Out, "\nCosts are in seconds; the least wins. docs/policies.md says what they are made of.")
	return c.leftOut(ctx, s)
}

// leftOut lists the upstreams that get no new job, and what keeps each from it.
func (c *Explain) leftOut(ctx context.Context, s cli.Console) error {
	var all struct {
		Upstreams []struct{ Address, Why, Suspect string }
	}
	if err := c.get(ctx, "/api/upstreams", nil, &all); err != nil {
		return err
	}
	for _, u := range all.Upstreams {
		if u.Suspect != "" && u.Why != "" {
			u.Why += ": " + u.Suspect
		}
		if u.Why != "" {
			fmt.Fprintf(s.Out, "left out: %s: %s\n", plain(u.Address), plain(u.Why))
		}
	}
	return nil
}

// Reload makes a sidecar read its configuration again.
type Reload struct{ adminPort }

// Run says what came of it.
func (c *Reload) Run(s cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	var done struct {
		Waiting []string `json:"waiting_for_restart"`
	}
	if err := c.ask(ctx, http.MethodPost, "/-/reload", nil, &done); err != nil {
		return err
	}
	fmt.Fprintln(s.Out, "the configuration was reloaded")
	for _, key := range done.Waiting {
		fmt.Fprintf(s.Out, "the change of %s waits for a restart\n", plain(key))
	}
	return nil
}

// Probe is a probe for images without a shell.
type Probe struct {
	adminPort
	Live bool `help:"Ask whether it lives (/healthz), not whether it wants jobs (/readyz)."`
}

// Run says how the sidecar is, and fails if that is not well.
func (c *Probe) Run(s cli.Console) error {
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	ctx, stop := cli.Context()
	defer stop()
	text, err := c.read(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return err
}
