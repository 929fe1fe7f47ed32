package proxy_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// Two sidecars that know nothing of each other, and a burst of 100 jobs
// before any report could tell them, load the upstreams evenly.
func TestABurstOverTwoSidecarsSpreads(t *testing.T) {
	for _, name := range []string{"least-in-flight", "expected"} {
		t.Run(name, func(t *testing.T) {
			const jobs, n = 100, 4
			var counts [n]atomic.Int64
			var arrived sync.WaitGroup
			arrived.Add(jobs)
			finish := make(chan struct{})
			var ups []string
			for i := range n {
				ups = append(ups, serving(t, func(w http.ResponseWriter, r *http.Request) {
					counts[i].Add(1)
					arrived.Done()
					<-finish
				}))
			}
			policy, err := selection.New(name)
			require.NoError(t, err)
			a := startSidecar(t, setup{upstreams: ups, policy: policy, seed: 1})
			b := startSidecar(t, setup{upstreams: ups, policy: policy, seed: 2})
			submit := client(t)
			var all sync.WaitGroup
			for i := range jobs {
				all.Go(func() {
					res, err := submit.Post([]*sidecar{a, b}[i%2].url("/"), "application/json", reader(`{"priority":"low"}`))
					if assert.NoError(t, err) {
						_ = res.Body.Close()
					}
				})
			}
			arrived.Wait()
			close(finish)
			all.Wait()
			least, most := int64(jobs), int64(0)
			for i := range counts {
				least, most = min(least, counts[i].Load()), max(most, counts[i].Load())
			}
			assert.LessOrEqual(t, float64(most), 1.5*float64(least))
		})
	}
}
