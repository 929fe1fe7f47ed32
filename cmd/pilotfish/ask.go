package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// operator asks the admin port of a running sidecar.
type operator struct {
	Admin     string `default:"127.0.0.1:9180" placeholder:"HOST:PORT" help:"The admin port of a running sidecar, or unix:PATH (${default})."`
	TokenFile string `type:"path" placeholder:"FILE" help:"Holds the token of a port that asks for one (admin_token_file)."`
}

// maxReply bounds what is read of a reply: some 100 times that of 300 upstreams.
const maxReply = 64 << 20

// maxReason bounds what is shown of a reply that is not JSON, in bytes.
const maxReason = 200

// get reads one of the admin port's replies.
func (o operator) get(ctx context.Context, path string, query url.Values, into any) error {
	return o.ask(ctx, http.MethodGet, path, query, into)
}

// ask sends a request to the admin port and reads the reply, which is JSON.
func (o operator) ask(ctx context.Context, method, path string, query url.Values, into any) error {
	text, err := o.read(ctx, method, path, query)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is no sidecar's admin port: %w", o.Admin, err)
	}
	return nil
}

// read sends a request to the admin port and returns the reply.
func (o operator) read(ctx context.Context, method, path string, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	at := url.URL{Scheme: "http", Host: o.Admin, Path: path, RawQuery: query.Encode()}
	if socket, local := settings.UnixPath(o.Admin); local {
		at.Host = "localhost"
		client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}
	}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	if o.TokenFile != "" {
		token, err := files.Token(o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // it repeats the URL
		}
		return nil, fmt.Errorf("no sidecar replies at %s: %w; name its admin port with --admin", o.Admin, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Admin, err)
	}
	if response.StatusCode != http.StatusOK {
		var problem struct{ Error, Detail string }
		if json.Unmarshal(text, &problem) != nil {
			problem.Detail = strings.TrimSpace(string(text[:min(len(text), maxReason)]))
		}
		hint := ""
		if response.StatusCode == http.StatusUnauthorized {
			hint = "; name the file of its token with --token-file"
		}
		return nil, fmt.Errorf("%s replies %s %s%s%s", o.Admin, response.Status, problem.Error, plain(problem.Detail), hint)
	}
	return text, nil
}

// plain is a text without what could steer a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
}

// short writes a number with three digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

type explainCommand struct {
	operator
	Project  string `placeholder:"ID" help:"The job's project; none by default."`
	Priority string `default:"low" enum:"low,high" help:"Its priority: low or high (${default})."`
}

// Run says where a job would go, and why. Nothing is sent.
func (c *explainCommand) Run(s cli.Console) error {
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
	err := c.get(ctx, "/api/pick", url.Values{"project": {c.Project}, "priority": {c.Priority}}, &pick)
	if err != nil {
		return err
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
	return nil
}

type reloadCommand struct{ operator }

// Run makes a sidecar read its configuration again, and says what came of it.
func (c *reloadCommand) Run(s cli.Console) error {
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

type probeCommand struct {
	operator
	Live bool `help:"Ask whether it lives (/healthz), not whether it wants jobs (/readyz)."`
}

// Run is a probe for images without a shell: it says how the sidecar is, and fails if
// that is not well.
func (c *probeCommand) Run(s cli.Console) error {
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
