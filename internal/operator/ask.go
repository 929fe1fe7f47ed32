package operator

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/pool"
)

// Explain shows where a job would go, and why. Nothing is sent.
type Explain struct {
	adminPort
	Project  string `placeholder:"ID" help:"The job's project; none by default."`
	Body     []byte `type:"filecontent" placeholder:"FILE" help:"A file with the job's body, which contains project and priority; - is standard input."`
	Priority string `default:"low" enum:"low,high" placeholder:"PRIORITY" help:"Its priority: low or high."`
}

// Run queries the costs of all upstreams, and prints them.
func (c *Explain) Run(s cli.Console) error {
	var pick admin.Pick
	method, query := http.MethodGet, "?"+url.Values{"project": {c.Project}, "priority": {c.Priority}}.Encode()
	if c.Body != nil {
		method, query = http.MethodPost, ""
	}
	if err := c.request(method, "/api/pick"+query, c.Body, &pick); err != nil {
		return errors.Join(err, c.leftOut(s, nil))
	}
	of := "a job without a project"
	if pick.Project != "" {
		of = "a job of project " + cli.Plain(pick.Project)
	}
	fmt.Fprintf(s.Out, "%s, priority %s, would go to %s\n", of, cli.Plain(pick.Priority), cli.Plain(pick.Upstream))
	if len(pick.Ranking) > 0 && pick.Ranking[0].Expected > 0 {
		first := pick.Ranking[0]
		fmt.Fprintf(s.Out, "it will probably hold a core for %s s; learned from: %s\n", short(first.Expected), cli.Plain(first.ExpectedBy))
	}
	fmt.Fprintln(s.Out)
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "cost\twait\tfetch\tplacement\tstop\tjobs\tcache\tfound\tupstream\t\n")
	shadow := ""
	var probed []string
	for _, r := range pick.Ranking {
		cost := "–\t–\t–\t–\t–"
		if c := r.Cost; c != nil {
			cost = strings.Join([]string{short(c.Total), short(c.Wait), short(c.Fetch), short(c.Placement), short(c.Stop)}, "\t")
		}
		if r.Shadow {
			shadow = r.Address
		}
		if r.Probe {
			probed = append(probed, cli.Plain(r.Address))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.0f %%\t%s\t\n", cost, short(r.Jobs), cli.Plain(r.Cache), 100*r.Found, cli.Plain(r.Address))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(s.Out, "\nCosts are in seconds; docs/policies.md explains them. The pick has the lowest cost,"+
		"\nor is drawn at random from the upstreams with the data and almost the same cost.")
	if len(probed) > 0 {
		fmt.Fprintf(s.Out, "Before a job is sent, these are probed for their load, which can change the pick: %s.\n", strings.Join(probed, ", "))
	}
	if shadow != "" {
		fmt.Fprintf(s.Out, "The shadow policy would take %s.\n", cli.Plain(shadow))
	}
	return c.leftOut(s, pick.Ranking)
}

// leftOut lists the upstreams that are not ranked, with the reasons. If all upstreams are ineligible, the job can
// still go to one of them.
func (c *Explain) leftOut(s cli.Console, ranked []pool.Ranked) error {
	var all admin.Now
	if err := c.request(http.MethodGet, "/api/upstreams", nil, &all); err != nil {
		return err
	}
	for _, u := range all.Upstreams {
		if u.Why == "" && len(ranked) > 0 && u.Heavy != ranked[0].Heavy {
			u.Why = pool.Ordinary.String()
			if u.Heavy {
				u.Why = pool.Dedicated.String()
			}
		}
		if u.Why != "" && !slices.ContainsFunc(ranked, func(r pool.Ranked) bool { return r.Address == u.Address }) {
			fmt.Fprintf(s.Out, "left out: %s: %s\n", cli.Plain(u.Address), cli.Plain(u.Why))
		}
	}
	return nil
}

// Reload reloads a sidecar's configuration.
type Reload struct{ adminPort }

// Run prints the result.
func (c *Reload) Run(s cli.Console) error {
	var done admin.Reloaded
	if err := c.request(http.MethodPost, "/-/reload", nil, &done); err != nil {
		return err
	}
	fmt.Fprintln(s.Out, "the configuration was reloaded")
	for _, key := range done.Waiting {
		fmt.Fprintf(s.Out, "the change of %s needs a restart\n", cli.Plain(key))
	}
	return nil
}

// Drain drains an upstream at a sidecar, or ends the drain.
type Drain struct {
	adminPort
	Upstream string `arg:"" help:"HOST:PORT of the upstream, as in the output of top."`
	End      bool   `kong:"-"`
}

// Run drains the upstream; the sidecar must have admin_write: true.
func (c *Drain) Run(s cli.Console) error {
	method, now := http.MethodPost, "gets no new jobs from this sidecar"
	if c.End {
		method, now = http.MethodDelete, "gets jobs again"
	}
	if _, err := c.read(method, "/api/upstreams/"+url.PathEscape(c.Upstream)+"/drain", nil); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s %s\n", cli.Plain(c.Upstream), now)
	return nil
}

// Probe checks liveness or readiness, for container images that have no shell or HTTP client.
type Probe struct {
	adminPort
	Live bool `help:"Check liveness (/healthz) instead of readiness (/readyz)."`
}

// Run prints the state of the sidecar, and fails if the check fails.
func (c *Probe) Run(s cli.Console) error {
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	text, err := c.read(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return err
}
