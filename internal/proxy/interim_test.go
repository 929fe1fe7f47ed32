package proxy_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Submitters reset their HTTP/2 streams while interim answers are written to
// them. The server encodes a header map on a goroutine of its own, which may go
// on after the stream was reset: the race detector finds whoever changes that
// map meanwhile, which would end the process.
func TestInterimAnswersWhileStreamsAreReset(t *testing.T) {
	up := scripted(t, func(p *peer) {
		for p.request() != nil {
			p.say("%s", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-A: 1\r\nX-B: 2\r\n\r\n", 30)+ok)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}})
	submit := h2c(t)
	const jobs = 1500
	var all sync.WaitGroup
	for worker := range uint64(8) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(worker, 1))
			for range jobs / 8 {
				ctx, cancel := context.WithCancel(t.Context())
				r, err := http.NewRequestWithContext(ctx, "POST", c.url("/"), strings.NewReader("{}"))
				if !assert.NoError(t, err) {
					cancel()
					return
				}
				timer := time.AfterFunc(time.Duration(rng.IntN(2000))*time.Microsecond, cancel)
				if res, err := submit.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				timer.Stop()
				cancel()
			}
		})
	}
	all.Wait()
	res, text := c.post("{}")
	require.Equal(t, 200, res.StatusCode, "the process lives")
	assert.Equal(t, "ok", text)
	require.Eventually(t, func() bool { return c.budget.Used() == 0 }, patience, time.Millisecond, "the jobs of streams that were reset should end")
}
