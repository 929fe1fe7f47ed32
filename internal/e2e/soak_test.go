//go:build soak

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// For two minutes, or as long as SOAK says, 200 jobs a second go through one
// sidecar to four upstreams. Every three seconds another of them has a fault.
// Afterwards each job is accounted for, and the sidecar is as it was.
func TestSoak(t *testing.T) {
	length := 2 * time.Minute
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK")
	}
	const seed = 20251120
	b := &books{}
	var upstreams []*faulty
	var addresses []string
	for n := range 4 {
		u := newFaulty(t, b, n)
		upstreams, addresses = append(upstreams, u), append(addresses, u.Address())
	}
	s := soaked(t, b, addresses)
	before := s.held(t)

	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	levels := newLevels()
	var wg sync.WaitGroup
	wg.Go(func() { misfortune(ctx, upstreams, rand.New(rand.NewPCG(seed, 1))) })
	wg.Go(func() { watch(ctx, s, levels) })
	newLoad(s.jobs, b).run(ctx, rand.New(rand.NewPCG(seed, 2)))
	wg.Wait()
	b.open.Wait()
	for _, u := range upstreams { // no job is open: this closes what the sidecar keeps for the next ones
		u.Kill()
	}

	for _, l := range levels {
		l.flat(t)
	}
	const few = 10 // connections of this test, and what the reports need
	assert.Eventually(t, func() bool {
		now := s.held(t)
		return now.goroutines <= before.goroutines+few && now.descriptors <= before.descriptors+few && now.jobs == 0
	}, 2*time.Minute, time.Second, "something is left of the jobs")
	t.Logf("at rest: before %+v, after %+v", before, s.held(t))
	last, err := s.scrape()
	require.NoError(t, err)
	assert.Zero(t, last.sum("pilotfish_upstream_in_flight"))
	assert.Zero(t, last.sum("pilotfish_queue_jobs"))
	assert.Zero(t, last.sum("pilotfish_body_bytes"))
	s.stop() // and its log is complete
	b.audit(t)
	b.print(t)
	b.compare(t, last)
}

// soaked starts the sidecar.
func soaked(t *testing.T, b *books, upstreams []string) *sidecar {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	// Each upstream has a fault every twelve seconds: with longer open times, one of them
	// might be all that is left for half a minute, which changes every level.
	text := "discovery:\n  static: [" + strings.Join(upstreams, ", ") + "]\nreports: {interval: 1s}\nbreaker: {open_max: 10s}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return launchWith(t, exec.Command(program, "serve", "--config", file,
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"), b.line)
}

// rest is what a sidecar without jobs still holds.
type rest struct{ goroutines, descriptors, jobs float64 }

func (s *sidecar) held(t *testing.T) rest {
	t.Helper()
	scraped, err := s.scrape()
	require.NoError(t, err)
	jobs := scraped.sum("pilotfish_upstream_in_flight") + scraped.sum("pilotfish_queue_jobs")
	return rest{scraped.sum("go_goroutines"), scraped.sum("process_open_fds"), jobs}
}

// print tells the ledger.
func (b *books) print(t *testing.T) {
	t.Helper()
	counts := map[string]int{"left before they were read": b.unnamed}
	for _, j := range b.jobs {
		counts["submitted"]++
		for _, e := range j.endings {
			key := string(e.kind)
			if e.kind == whole || e.kind == own {
				key += fmt.Sprintf(" %d", e.status)
			}
			if e.kind == own {
				key += " " + e.text + ", after upstreams that were " + j.story()
			}
			counts[key]++
		}
		for _, v := range j.visits {
			counts["visit of an upstream that is "+v.fault.String()]++
		}
		if j.executedTwice() {
			counts["executed a second time, as the rule allows"]++
		}
		if j.rescued() {
			counts["answered after a failed attempt"]++
		}
		for _, l := range j.logged {
			counts[fmt.Sprintf("with %d attempts", len(l.Attempts))]++
		}
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "%8d  %s\n", counts[key], key)
	}
	t.Logf("ledger:\n%s", text.String())
}

// compare holds the sidecar's metrics against the books. Of a job that its
// submitter left, the two may think differently.
func (b *books) compare(t *testing.T, last samples) {
	t.Helper()
	logged, left := b.unnamed, 0
	ended := map[string]int{}
	for _, j := range b.jobs {
		logged += len(j.logged)
		switch e := j.endings[0]; {
		case e.kind == aborted:
			left++
		case e.kind == cut:
			ended["truncated"]++
		case e.kind == whole && e.status == http.StatusOK:
			ended["answered"]++
		case e.kind == whole:
			ended["failed"]++
		}
	}
	assert.Equal(t, float64(logged), last.sum("pilotfish_jobs_total"), "the metrics and the log count the jobs differently")
	for outcome, n := range ended {
		counted := last.sum("pilotfish_jobs_total", "outcome", outcome)
		assert.GreaterOrEqual(t, counted, float64(n), outcome)
		assert.LessOrEqual(t, counted, float64(n+left), outcome)
	}
}
