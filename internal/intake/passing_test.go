package intake

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// passing returns a body whose head alone is kept.
func passing(tb testing.TB, rest io.Reader, declared, limit int64) *Body {
	body, err := ReadBody(rest, declared, limit, NewBudget(0, 16<<20))
	require.NoError(tb, err)
	require.False(tb, body.Whole())
	require.Len(tb, body.Bytes(), peek)
	return body
}

func TestConcurrentAttemptsShareOutTheRest(t *testing.T) {
	data := randomBytes(300_000)
	for range 20 {
		body := passing(t, bytes.NewReader(data), -1, maxBody)
		var wg sync.WaitGroup
		var mu sync.Mutex
		complete := 0
		for range 4 {
			wg.Go(func() {
				got, err := io.ReadAll(body.NewReader())
				assert.True(t, bytes.HasPrefix(data, got))
				if err != nil {
					assert.ErrorIs(t, err, ErrSpent)
					assert.Empty(t, got)
					return
				}
				assert.Len(t, got, len(data))
				mu.Lock()
				defer mu.Unlock()
				complete++
			})
		}
		wg.Wait()
		assert.Equal(t, 1, complete)
		body.Release()
	}
}
