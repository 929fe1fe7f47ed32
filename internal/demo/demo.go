// Package demo implements pilotfish demo: rule processing servers, a tour of three
// jobs, and then a little load.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/pkg/selection"
)

const (
	tourProject = 12345
	// tourCost is how long the example job takes in each step: its data is slow to load.
	tourCost = "fetch=600ms,output=20ms"
	// longJobs is more than a server has cores. These jobs last at least as long as the tour. They last less than the
	// queue timeout of KeepBusy's jobs; otherwise KeepBusy's jobs would expire behind them.
	longJobs = 12
	longCost = "output=8s"
	// patience is the time limit for a report of a server.
	patience = 10 * time.Second

	rate     = 5 // jobs per second that KeepBusy submits
	projects = 40
	// maxAnswer bounds the bytes read of a response.
	maxAnswer = 1 << 20
)

// Demo submits jobs to a sidecar that explains its choices in headers and has only the servers of StartServers
// as upstreams.
type Demo struct {
	Out      io.Writer
	Balancer *balancer.Balancer // the sidecar's
	Address  string             // where it takes jobs
}

func (d *Demo) print(format string, args ...any) { fmt.Fprintf(d.Out, format+"\n", args...) }

// Tour submits three jobs of one project, and prints what the sidecar does with each, and why.
func (d *Demo) Tour(ctx context.Context) error {
	d.print("1. A job of project %d. No server has the project's data.", tourProject)
	cold, err := d.submit(ctx, example.Job(), tourCost)
	if err != nil {
		return err
	}
	home := cold.upstream
	d.print("   It went to %s, the server that all sidecars prefer for this project.", home)
	d.print("   It took %s, because the data had to be loaded. The response:\n", cold.took)
	fmt.Fprint(d.Out, cold.body)
	if _, err := d.until(ctx, home, func(s pool.State) bool { return s.Cached > 0 }); err != nil {
		return err
	}

	d.print("\n2. The same project again.")
	warm, err := d.submit(ctx, example.Job(), tourCost)
	if err != nil {
		return err
	}
	d.print("   It went to %s, which %s.\n   It took %s.", warm.upstream, cacheWords[warm.cache], warm.took)

	long, cancel := context.WithCancel(ctx)
	defer cancel()
	for n := range longJobs { // around the sidecar, as another sidecar would
		past := Demo{Address: home}
		go past.submit(long, jobBody(tourProject, "high", n), longCost) //nolint:errcheck // canceling the context long aborts the job
	}
	// Before all of them have arrived, the wait can be shorter than loading the data elsewhere.
	busy, err := d.until(ctx, home, func(s pool.State) bool { return s.Stalled >= float64(longJobs-s.Cores) })
	if err != nil {
		return err
	}
	d.print("\n3. The same project once more, while %d long jobs keep the %d cores of %s busy.", longJobs, busy.Cores, home)
	ranking, err := d.Balancer.Explain(pool.Request{Project: intake.Key(strconv.Itoa(tourProject)), Priority: selection.High})
	if err != nil {
		return err
	}
	moved, err := d.submit(ctx, example.Job(), tourCost)
	if err != nil {
		return err
	}
	d.print("   It went to %s.", moved.upstream)
	for _, r := range ranking {
		if c := r.Cost; c != nil && r.Address == home {
			d.print("   Expected wait for a core of %s: %.1f s.", home, c.Wait)
		} else if c != nil && r.Address == moved.upstream {
			d.print("   Loading the data at %s takes 0.6 s but is charged as %.1f s, because later jobs reuse it.", moved.upstream, c.Fetch)
		}
	}
	d.print("   It took %s.\n", moved.took)
	return nil
}

// cacheWords describes how pilotfish knows that a server has the data.
var cacheWords = map[string]string{
	selection.Cached.String():        "lists the data as cached",
	selection.AssumedCached.String(): "probably has the data: the last job went there, but its cache listing has not arrived yet",
	selection.NotCached.String():     "does not have the data",
}

// until polls the state of a server until it meets a condition, and returns it.
func (d *Demo) until(ctx context.Context, address string, so func(pool.State) bool) (pool.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		for _, s := range d.Balancer.States() {
			if s.Address == address && so(s) {
				return s, nil
			}
		}
		select {
		case <-ctx.Done():
			return pool.State{}, errors.New("timeout: the server's report does not show the effect of the jobs")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// KeepBusy submits jobs until ctx ends, so that the page has something to show. Some projects are more popular
// than others.
func (d *Demo) KeepBusy(ctx context.Context, rng *rand.Rand) {
	for n := 1; ctx.Err() == nil; n++ {
		project := 100 + uint64(projects*math.Pow(rng.Float64(), 3))
		go d.submit(ctx, jobBody(project, []string{"low", "high"}[n%2], n), "fetch=400ms,operators=200ms,output=60ms") //nolint:errcheck // the page shows its result
		time.Sleep(time.Second / rate)
	}
}

// jobBody returns the body of a job. A different n for each keeps servers from reusing results.
func jobBody(project uint64, priority string, n int) string {
	return fmt.Sprintf(`{"session_id":"demo-%d","project_id":%d,"priority":%q,"timeouts":{"queue_seconds":10,"evaluate_seconds":20},`+
		`"operators":[{"name":"demo","actions":[{"field":"demo","action":"set","value":{"type":"static","value":"%d"}}]}]}`, n, project, priority, n)
}

// result is the result of one job.
type result struct {
	upstream, cache string
	body            string
	took            time.Duration // rounded
}

// submit posts a job as a submitter would. cost is how long the servers sleep in each of its steps.
func (d *Demo) submit(ctx context.Context, body, cost string) (a result, err error) {
	began := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.Address+"/v1/jobs", strings.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Close = true // the sidecar's shutdown would wait for an idle connection
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/csv"}, "X-Cost": {cost}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the job's response was %s: %s", resp.Status, text)
	}
	h := resp.Header
	return result{
		upstream: h.Get("Pilotfish-Upstream"), cache: h.Get("Pilotfish-Cache"),
		body: string(text), took: time.Since(began).Round(time.Millisecond),
	}, err
}

// servers is how many rule processing servers the demo starts.
const servers = 4

// StartServers starts rule processing servers on free loopback ports. They stop with the process.
func StartServers() (addresses []string, err error) {
	settings := ruleserver.Defaults()
	settings.TrustCost = true // the demo itself sets X-Cost in its jobs
	for range servers {
		server, err := ruleserver.New(ruleserver.Config{Settings: settings, Feeds: example.AnyFeeds()})
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		h := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = h.Serve(l) }()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
