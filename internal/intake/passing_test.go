package intake

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// passing returns a body whose head alone is kept.
func passing(tb testing.TB, rest io.Reader, declared, limit int64) *Body {
	body, err := ReadBody(rest, declared, limit, NewBudget(0))
	require.NoError(tb, err)
	require.False(tb, body.Whole())
	require.Len(tb, body.Bytes(), peek)
	return body
}

func TestOverTheBudgetABodyPassesOnce(t *testing.T) {
	data := randomBytes(1 << 20)
	for _, declared := range []int64{1 << 20, -1} {
		body := passing(t, iotest.HalfReader(bytes.NewReader(data)), declared, maxBody)
		assert.Equal(t, declared, body.Len())
		assert.True(t, body.Replayable(), "until something is lost")
		assert.Equal(t, data, readAll(t, body.NewReader()))
		assert.False(t, body.Replayable())
		assert.NoError(t, body.Err())
		_, err := body.NewReader().Read(make([]byte, 1))
		assert.ErrorIs(t, err, ErrSpent)
	}
}

func TestOverTheBudgetTheHeadIsFull(t *testing.T) {
	for _, declared := range []int64{0, 10, 45_000, 100_000, -1} {
		passing(t, bytes.NewReader(randomBytes(100_000)), declared, maxBody)
	}
}

// An upstream that refuses the connection, or fails within the head, costs no attempt.
func TestOverTheBudgetTheHeadIsReplayed(t *testing.T) {
	data := randomBytes(1 << 20)
	body := passing(t, bytes.NewReader(data), -1, maxBody)
	head := make([]byte, peek)
	for range 3 {
		require.NoError(t, body.NewReader().Close())
		_, err := io.ReadFull(body.NewReader(), head)
		require.NoError(t, err)
		require.Equal(t, data[:peek], head)
		require.True(t, body.Replayable())
	}
	assert.Equal(t, data, readAll(t, body.NewReader()))
}

func TestAbandonedAttemptsDoNotStealTheRest(t *testing.T) {
	data := randomBytes(1 << 20)
	body := passing(t, bytes.NewReader(data), -1, maxBody)
	abandoned := body.NewReader()
	next := body.NewReader()
	got, err := io.ReadAll(abandoned)
	assert.ErrorIs(t, err, errClosed)
	assert.Equal(t, data[:peek], got)
	assert.Equal(t, data, readAll(t, next))
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
					assert.True(t, errors.Is(err, errClosed) || errors.Is(err, ErrSpent), "%v", err)
					return
				}
				assert.Len(t, got, len(data))
				mu.Lock()
				defer mu.Unlock()
				complete++
			})
		}
		wg.Wait()
		assert.LessOrEqual(t, complete, 1)
		body.Release()
	}
}

func TestOverTheBudgetTheLimitHolds(t *testing.T) {
	for _, rest := range []io.Reader{endless{}, bytes.NewReader(randomBytes(200_001))} {
		body := passing(t, rest, -1, 200_000)
		n, err := io.Copy(io.Discard, body.NewReader())
		assert.ErrorIs(t, err, ErrTooLarge)
		assert.LessOrEqual(t, n, int64(200_000))
		assert.ErrorIs(t, body.Err(), ErrTooLarge)
	}
	body := passing(t, bytes.NewReader(randomBytes(200_000)), -1, 200_000)
	assert.Len(t, readAll(t, body.NewReader()), 200_000)
}

func TestTheSubmittersFailureIsTold(t *testing.T) {
	gone := errors.New("connection reset")
	body := passing(t, io.MultiReader(bytes.NewReader(randomBytes(100_000)), iotest.ErrReader(gone)), -1, maxBody)
	got, err := io.ReadAll(body.NewReader())
	assert.ErrorIs(t, err, gone)
	assert.Len(t, got, 100_000)
	assert.ErrorIs(t, body.Err(), gone)

	body = passing(t, bytes.NewReader(randomBytes(100_000)), 100_001, maxBody)
	_, err = io.ReadAll(body.NewReader())
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.ErrorIs(t, body.Err(), io.ErrUnexpectedEOF)
}

func TestShortBodiesAreAlwaysWhole(t *testing.T) {
	data := randomBytes(peek - 1)
	body, err := ReadBody(bytes.NewReader(data), -1, maxBody, NewBudget(0))
	require.NoError(t, err)
	assert.True(t, body.Whole())
	assert.Equal(t, data, readAll(t, body.NewReader()))
}

func TestFactsOfABody(t *testing.T) {
	r := newReader(t, pointers{})
	filler := `"x":"` + strings.Repeat("x", 100_000) + `"`
	for _, c := range []struct {
		name, body string
		budget     int64
		want       string
	}{
		{"whole", `{"project_id":1,` + filler + `,"priority":"high"}`, maxBody, `project="1" priority=high`},
		{"head", `{"project_id":1,` + filler + `,"priority":"high"}`, 0, `project="1"`},
		{"head without", `{` + filler + `,"priority":"high"}`, 0, `-`},
		{"broken", `{"project_id":1,}`, 0, `invalid JSON at line 1, column 16 (byte 15): invalid character ',' at start of value`},
		{"broken beyond the head", `{"project_id":1,` + filler, 0, `project="1"`},
	} {
		body, err := ReadBody(strings.NewReader(c.body), int64(len(c.body)), maxBody, NewBudget(c.budget))
		require.NoError(t, err)
		facts, _, err := r.read(Head{}, body.Bytes(), body.Whole())
		assert.Equal(t, c.want, describe(facts, err), c.name)
		assert.Equal(t, c.body, string(readAll(t, body.NewReader())), c.name)
	}
}
