package proxy_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/peer"
)

// A long head counts for as long as its job is under way, like a body. So does a job over HTTP/2.
func TestLongHeadsCountInTheBudget(t *testing.T) {
	for least, newClient := range map[int]func(testing.TB) *http.Client{0: client, 16 << 10: h2c} {
		var c *sidecar
		up := serving(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, c.budget.Used())
		})
		c = startSidecar(t, setup{upstreams: []string{up}, budget: 1})
		submit := newClient(t) // after the sidecar, whose end would wait for its connections
		for size, counted := range map[int]int{100: 0, 15_000: 15_000} {
			_, text := c.send(submit, reader("{}"), "X-Long", strings.Repeat("x", size))
			used, err := strconv.Atoi(text)
			require.NoError(t, err)
			assert.InDelta(t, least+counted+4<<10, used, 4<<10)
		}
	}
}

// The head of a response counts, too. If there is no memory for it, the job is not retried.
func TestLongHeadsOfResponsesCountInTheBudget(t *testing.T) {
	var c *sidecar
	lines := strings.Repeat("a:\r\n", 900)
	up := peer.Listen(t, func(p *peer.Peer) {
		for first := p.N == 1; p.Request() != nil; first = false {
			p.Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\n", lines)
			assert.Eventually(t, func() bool { return !first || c.budget.Used() >= int64(900*(4+128)) }, patience, time.Millisecond)
			p.Say("ok")
		}
	})
	c = startSidecar(t, setup{upstreams: []string{up}, budget: 1})
	response, text := c.post("{}")
	assert.Equal(t, 200, response.StatusCode)
	assert.Equal(t, "ok", text)
	assert.Eventually(t, func() bool { return c.budget.Used() == 0 }, patience, time.Millisecond)

	taken := c.budget.All() - 100_000
	require.NoError(t, c.budget.Reserve(taken))
	defer c.budget.Return(taken)
	response, text = c.post("{}")
	assert.Equal(t, 502, response.StatusCode)
	assert.Contains(t, text, "no memory for the response header")
	assert.Empty(t, response.Header.Get("Retry-After"))
}
