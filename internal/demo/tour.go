package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/pkg/selection"
)

const (
	tourProject = "12345"
	// tourCost is what the servers make the example job last: its data is slow to fetch.
	tourCost = "fetch=600ms,output=20ms"
	// longJobs are more than a server has cores. They last as long as the tour at least, and less long
	// than the jobs of the load wait for a core: else that begins with jobs that expire.
	longJobs = 12
	longCost = "output=8s"
	// tourPatience bounds the wait for a report of a server.
	tourPatience = 10 * time.Second
)

// Balancer is what the tour asks the sidecar's balancer.
type Balancer interface {
	States() []pool.State
	Explain(pool.Request) ([]pool.Ranked, error)
}

// Tour shows what the sidecar does with three jobs of one project, and says why.
type Tour struct {
	Out      io.Writer
	Balancer Balancer
	Address  string // where the sidecar takes jobs
	Client   *http.Client
}

// Run submits the jobs one after another. The sidecar must run, before the servers of
// StartServers alone.
func (t *Tour) Run(ctx context.Context) error {
	t.say("1. A job of project %s. No server has the project's data.", tourProject)
	cold, err := t.submit(ctx)
	if err != nil {
		return err
	}
	t.say("   It went to %s, the server that every sidecar prefers for this project.", cold.upstream)
	t.say("   It took %s, because the data had to be fetched. The response:\n", cold.took)
	fmt.Fprint(t.Out, cold.body)

	home := cold.upstream
	if _, err := t.until(ctx, home, func(s pool.State) bool { return s.Cached > 0 }); err != nil {
		return err
	}
	t.say("\n2. The same project again.")
	warm, err := t.submit(ctx)
	if err != nil {
		return err
	}
	t.say("   It went to %s, which %s.", warm.upstream, cacheWords[warm.cache])
	t.say("   It took %s.", warm.took)

	long, cancel := context.WithCancel(ctx)
	defer cancel()
	t.occupy(long, home)
	busy, err := t.until(ctx, home, func(s pool.State) bool { return s.Stalled > 0 })
	if err != nil {
		return err
	}
	t.say("\n3. The same project once more, while %d long jobs keep the %d cores of %s busy.", longJobs, busy.Cores, home)
	ranking, err := t.Balancer.Explain(pool.Request{Project: intake.Key(tourProject), Priority: selection.High})
	if err != nil {
		return err
	}
	moved, err := t.submit(ctx)
	if err != nil {
		return err
	}
	t.say("   It went to %s.", moved.upstream)
	t.compare(ranking, home, moved.upstream)
	t.say("   It took %s.\n", moved.took)
	return nil
}

func (t *Tour) say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// cacheWords says how it is known that a server has the data.
var cacheWords = map[string]string{
	selection.Cached.String():        "lists the data as cached",
	selection.AssumedCached.String(): "should have the data: that is a guess, because the last job went there and its list has not come",
	selection.NotCached.String():     "does not have the data",
}

// compare says what the sidecar expected of the server that has the data and of the
// one that it picked.
func (t *Tour) compare(ranking []pool.Ranked, home, picked string) {
	cost := func(address string) selection.Cost {
		i := slices.IndexFunc(ranking, func(r pool.Ranked) bool { return r.Address == address })
		if i < 0 || ranking[i].Cost == nil {
			return selection.Cost{}
		}
		return *ranking[i].Cost
	}
	if picked == home {
		t.say("   It waits there: by pilotfish's guesses that counts %.1f s, and to fetch the data elsewhere more.", cost(home).Wait)
		return
	}
	t.say("   It moved. By pilotfish's guesses, the wait for a core of %s counts %.1f s, and to fetch the data", home, cost(home).Wait)
	t.say("   elsewhere %.1f s: less than it takes, because later jobs of the project will find it there.", cost(picked).Fetch)
}

// until waits until an upstream has reported something, and returns what is known of it then.
func (t *Tour) until(ctx context.Context, address string, so func(pool.State) bool) (pool.State, error) {
	ctx, cancel := context.WithTimeout(ctx, tourPatience)
	defer cancel()
	for {
		for _, s := range t.Balancer.States() {
			if s.Address == address && so(s) {
				return s, nil
			}
		}
		select {
		case <-ctx.Done():
			return pool.State{}, errors.New("the server does not report what it does")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// occupy gives a server long jobs past the sidecar, as another sidecar would, until
// ctx ends.
func (t *Tour) occupy(ctx context.Context, address string) {
	for n := range longJobs {
		go job{made(tourProject, "high", n), longCost}.submit(ctx, t.Client, address) //nolint:errcheck // the end of ctx cuts it
	}
}

// toured is what became of one job.
type toured struct {
	upstream, cache string
	body            string
	took            time.Duration // rounded
}

// submit posts the example job.
func (t *Tour) submit(ctx context.Context) (toured, error) {
	began := time.Now()
	h, text, err := job{example.Job(), tourCost}.submit(ctx, t.Client, t.Address)
	if err != nil {
		return toured{}, err
	}
	return toured{upstream: h.Get("Pilotfish-Upstream"), cache: h.Get("Pilotfish-Cache"), body: string(text), took: time.Since(began).Round(time.Millisecond)}, nil
}
