package upstreamclient

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Trailers come with the end of the body. Where they cannot be sent, the upstream would wait for
// the end of the body, and the submitter for its answer.
func TestTrailersThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, closed := closing(t, func(p *peer) { p.gone() })
		trailer := http.Header{"X-Sum": nil}
		r := job("up:1", "")
		r.Length, r.Trailer = -1, trailer
		r.Body = io.NopCloser(readerFunc(func([]byte) (int, error) {
			trailer["X Y"] = []string{"1"} // as net/http's server does
			return 0, io.EOF
		}))
		started := time.Now()
		_, p, err := c.Do(t.Context(), r)
		var failed *BodyError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, ErrRequest)
		assert.Equal(t, started, time.Now())
		assert.False(t, p.InFull)
		synctest.Wait()
		assert.True(t, *closed)
	})
}
