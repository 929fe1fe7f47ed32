package upstreamclient

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A head that stops in the middle of a line is late, not malformed.
func TestAHeadThatStops(t *testing.T) {
	for _, head := range []string{"H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent", "HTTP/1.1 102 Processing\r\n\r\nHTTP"} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := closing(t, func(p *peer) {
				p.say("%s", head)
				p.gone()
			})
			_, p, err := c.Do(t.Context(), job("up:1", ""))
			require.ErrorIs(t, err, ErrDeadline, head)
			assert.True(t, p.Answered)
		})
	}
}
