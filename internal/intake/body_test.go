package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const maxBody = 64 << 20

func randomBytes(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(data)
	return data
}

func TestBodyIsReplayedByteForByte(t *testing.T) {
	for _, size := range []int{0, 1, 4096, 4097, 16<<10 + 1, 64 << 10, 64<<10 + 1, 1<<20 + 1, 8 << 20} {
		data := randomBytes(size)
		for _, how := range []struct {
			name string
			wrap func(io.Reader) io.Reader
		}{
			{"plain", func(r io.Reader) io.Reader { return r }},
			{"halves", iotest.HalfReader},
			{"data with EOF", iotest.DataErrReader},
		} {
			for _, declared := range []int64{int64(size), -1} {
				t.Run(fmt.Sprintf("%d/%s/%d", size, how.name, declared), func(t *testing.T) {
					budget := NewBudget(maxBody, 16<<20)
					body, err := ReadBody(how.wrap(bytes.NewReader(data)), declared, maxBody, budget)
					require.NoError(t, err)
					assert.True(t, body.Whole())
					assert.EqualValues(t, size, body.Len())
					assert.True(t, bytes.Equal(data, body.Bytes()))
					assert.True(t, body.Replayable())
					assert.GreaterOrEqual(t, budget.Used(), int64(size))
					if declared >= 0 {
						assert.LessOrEqual(t, budget.Used(), int64(size)+1, "a true length costs no more")
					} else {
						assert.LessOrEqual(t, budget.Used(), max(2*int64(size), firstRead))
					}
					body.Release()
					assert.Zero(t, budget.Used())
				})
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	const limit = 100_000
	for _, size := range []int{limit, limit + 1, 10 * limit} {
		for _, declared := range []int64{int64(size), -1, 0} {
			budget := NewBudget(maxBody, 16<<20)
			read := bytes.NewReader(randomBytes(size))
			body, err := ReadBody(read, declared, limit, budget)
			if size <= limit {
				require.NoError(t, err)
				assert.EqualValues(t, size, body.Len())
				continue
			}
			require.ErrorIs(t, err, ErrTooLarge)
			assert.Zero(t, budget.Used())
			assert.LessOrEqual(t, size-read.Len(), limit+1)
			if declared > limit {
				assert.Equal(t, size, read.Len(), "a declared length is refused unread")
				assert.EqualError(t, err, fmt.Sprintf("the body is too large: %d bytes declared, 100000 allowed", size))
			} else {
				assert.EqualError(t, err, "the body is too large: more than 100000 bytes")
			}
		}
	}
	_, err := ReadBody(bytes.NewReader([]byte("x")), -1, 0, NewBudget(0, 16<<20))
	assert.ErrorIs(t, err, ErrTooLarge)
	body, err := ReadBody(bytes.NewReader(nil), -1, 0, NewBudget(0, 16<<20))
	require.NoError(t, err)
	assert.Zero(t, body.Len())
}

// stuck is a body that stops before its end.
type stuck struct {
	left int
	on   chan struct{} // it goes on, and fails
}

func (s *stuck) Read(p []byte) (int, error) {
	if s.left == 0 {
		<-s.on
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), s.left)
	s.left -= n
	return n, nil
}

// Arriving bodies stay within the budget and its reserve, however many there are and whatever
// length they declare. Those without room fail, and later ones succeed when there is room again.
func TestBodiesThatArriveStayWithinTheReserve(t *testing.T) {
	for _, c := range []struct {
		budget, declared int64
		sent             int
	}{
		{16 << 20, 1_000_000, 30},
		{16 << 20, 1_000_000, 70_000},
		{0, -1, 3},
		{0, 60_000, 50_000},
		{200 << 20, 1_000_000, 200_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			budget, on := NewBudget(c.budget, 16<<20), make(chan struct{})
			var refused, began atomic.Int64
			var bodies sync.WaitGroup
			read := func() {
				began.Add(1)
				body, err := ReadBody(&stuck{c.sent, on}, c.declared, maxBody, budget)
				if err == nil {
					assert.False(t, body.Whole())
					<-on
					body.Release()
					return
				}
				if errors.Is(err, ErrNoRoom) {
					refused.Add(1)
				}
			}
			for range 6_000 {
				bodies.Go(read)
			}
			synctest.Wait()
			// In the crowd, one is refused for what another gives back at once. Alone, none is.
			for before := int64(-1); before != refused.Load()-1; {
				before = refused.Load()
				bodies.Go(read)
				synctest.Wait()
			}
			assert.LessOrEqual(t, budget.Used(), budget.All())
			step := int64(peek) // what the last one asked for, at most
			if c.sent > 2*peek {
				step = c.declared // a body of this size asks for all the rest of it
			}
			assert.Greater(t, budget.Used(), budget.All()-step)
			assert.NotZero(t, refused.Load())
			assert.GreaterOrEqual(t, began.Load(), int64(6_000))
			t.Logf("%+v: %d of %d were refused", c, refused.Load(), began.Load())
			close(on)
			bodies.Wait()
			assert.Zero(t, budget.Used())
			body, err := ReadBody(bytes.NewReader(randomBytes(60_000)), 60_000, maxBody, budget)
			require.NoError(t, err)
			body.Release()
		})
	}
}

func TestConcurrentAttemptsShareOutTheRest(t *testing.T) {
	data := randomBytes(300_000)
	for range 20 {
		body, err := ReadBody(bytes.NewReader(data), -1, maxBody, NewBudget(0, 16<<20))
		require.NoError(t, err)
		require.Len(t, body.Bytes(), peek, "only the first bytes are kept")
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

// FuzzBody lets a script decide how bytes arrive and how attempts read them: each byte of it is a
// step. Whatever the order, the one attempt that reads sees the body from its beginning, with no gap.
func FuzzBody(f *testing.F) {
	f.Add([]byte("hello"), uint32(0), int64(5), []byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte("hello"), uint32(200_000), int64(-1), []byte{0, 0, 1, 9, 17, 2, 2, 0, 1})
	f.Add([]byte{}, uint32(0), int64(9), []byte{0, 3})
	f.Fuzz(func(t *testing.T, seed []byte, repeat uint32, declared int64, script []byte) {
		const limit = 256 << 10
		data := seed
		if len(seed) > 0 {
			data = bytes.Repeat(seed, 1+int(repeat%(300<<10))/len(seed))
		}
		declared = max(declared, -1)
		budget := NewBudget(100<<10, 16<<20)
		body, err := ReadBody(bytes.NewReader(data), declared, limit, budget)
		require.LessOrEqual(t, budget.Used(), int64(100<<10))
		if err != nil {
			require.True(t, errors.Is(err, ErrTooLarge) && (len(data) > limit || declared > limit) ||
				errors.Is(err, io.ErrUnexpectedEOF) && declared > int64(len(data)), "%v", err)
			require.Zero(t, budget.Used())
			return
		}
		require.Equal(t, data[:len(body.Bytes())], body.Bytes())
		if body.Whole() {
			require.LessOrEqual(t, declared, int64(len(data)), "a body that ends early is an error")
			script = nil
		}

		type reading struct {
			r    io.Reader
			seen int
		}
		var readings []*reading
		for _, step := range script {
			if step%4 == 0 {
				readings = append(readings, &reading{r: body.NewReader()})
			}
			if len(readings) == 0 {
				continue
			}
			a := readings[int(step/4)%len(readings)]
			p := make([]byte, 1+int(step)*997)
			n, err := a.r.Read(p)
			require.Equal(t, data[a.seen:a.seen+n], p[:n])
			a.seen += n
			switch {
			case err == io.EOF:
				assert.Equal(t, len(data), a.seen)
			case err != nil && len(data) <= limit && declared <= int64(len(data)):
				require.ErrorIs(t, err, ErrSpent)
			}
		}
		body.Release()
		body.Release()
		require.Zero(t, budget.Used())
	})
}
