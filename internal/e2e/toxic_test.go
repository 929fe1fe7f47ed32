//go:build cluster

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestClusterToxicNetwork: the network to one of three servers has one of several faults. Every
// job gets the correct response, after retries where they are allowed; a response that is
// truncated on the way is forwarded as truncated.
func TestClusterToxicNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		toxic   string // "" is a closed port
		outcome string // of attempts there
		ending  string // of their jobs
	}{
		"latency":         {toxic("latency", "downstream", `"latency": 300, "jitter": 200`), "answered", "right"},
		"bandwidth":       {toxic("bandwidth", "downstream", `"rate": 1`), "answered", "right"},
		"bandwidth, up":   {toxic("bandwidth", "upstream", `"rate": 1`), "answered", "right"},
		"slices":          {toxic("slicer", "downstream", `"average_size": 20, "size_variation": 10, "delay": 1000`), "answered", "right"},
		"slow close":      {toxic("slow_close", "downstream", `"delay": 500`), "answered", "right"},
		"reset":           {toxic("reset_peer", "downstream", `"timeout": 0`), "no_answer", "right"},
		"reset, up":       {toxic("reset_peer", "upstream", `"timeout": 0`), "no_answer", "right"},
		"late reset":      {toxic("reset_peer", "downstream", `"timeout": 300`), "no_answer", "right"},
		"timeout":         {toxic("timeout", "downstream", `"timeout": 300`), "no_answer", "right"},
		"silence":         {toxic("timeout", "downstream", `"timeout": 0`), "timed_out", "right"},
		"cut in the body": {toxic("limit_data", "downstream", `"bytes": 350`), "truncated", "cut"}, // more than a head, less than a response
		"cut in the head": {toxic("limit_data", "downstream", `"bytes": 10`), "truncated", "refused"},
		"refused":         {"", "refused", "right"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxies := newToxiproxy(t)
			cluster := newCluster(t, newFeeds(t, 0), "--cost=fetch=10ms,output=10ms")
			var fronts []string
			for _, a := range freeAddresses(t, 3) {
				cluster.serve(a)
				fronts = append(fronts, proxies.before(a))
			}
			cluster.sideline("retry: {budget: 1, first_byte: 10s}\ndiscovery:\n  static: [" + strings.Join(fronts, ", ") + "]\n")
			cluster.eligible(3, 3)
			bad := fronts[0]
			if c.toxic == "" {
				proxies.close(bad)
			} else {
				proxies.spoil(bad, c.toxic)
			}

			l := newLedger()
			s := newSubmitters(t, cluster.sidecar.jobs, l, 3)
			stop := s.pace(20 * time.Millisecond)
			s.more(t, 80)
			stop()
			if c.toxic == "" {
				cluster.eligible(2, 3) // a report or an attempt was refused, whichever was first
			}
			cluster.balance(l)
			cluster.beside.drain()
			for _, server := range cluster.servers {
				server.drain()
			}
			cluster.read(l)

			assert.Empty(t, l.audit())
			there := l.attempts(bad, c.outcome)
			moved := l.attempts(bad, "moved") // before they timed out, because reports failed, too
			if c.toxic != "" {
				assert.NotZero(t, there+moved, "the bad way was taken, and was bad:\n%v", l)
			}
			if c.ending == "right" {
				assert.Equal(t, len(l.answers), l.count("right"), "%v", l)
			} else {
				assert.Equal(t, there, l.count(c.ending), "%v", l)
				assert.Equal(t, len(l.answers), l.count("right")+there, "%v", l)
			}
		})
	}
}

func toxic(kind, direction, attributes string) string {
	return fmt.Sprintf(`{"type": %q, "stream": %q, "toxicity": 1, "attributes": {%s}}`, kind, direction, attributes)
}
