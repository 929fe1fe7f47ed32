package logging

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// writes records the writes of a log.
type writes struct {
	mu   sync.Mutex
	made []string
	fail func(p []byte) (int, error) // nil: every write succeeds
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := len(p), error(nil)
	if w.fail != nil {
		n, err = w.fail(p)
	}
	w.made = append(w.made, string(p[:n]))
	return n, err
}

func (w *writes) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.made)
}

func TestLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to writes
		w := &writer{to: &to}
		write := func(line string) {
			n, err := w.Write([]byte(line))
			require.NoError(t, err)
			require.Equal(t, len(line), n)
		}
		write("a\n")
		time.Sleep(writeDelay / 2)
		write("b\n")
		synctest.Wait()
		assert.Empty(t, to.texts())
		time.Sleep(writeDelay / 2)
		synctest.Wait()
		assert.Equal(t, []string{"a\nb\n"}, to.texts(), "in time")

		write("c\n")
		require.NoError(t, w.Sync())
		require.NoError(t, w.Sync())
		assert.Equal(t, []string{"c\n"}, to.texts()[1:], "at Sync, once")

		long := strings.Repeat("x", writeSize/2) + "\n"
		write(long)
		synctest.Wait()
		assert.Empty(t, to.texts()[2:])
		write(long)
		synctest.Wait()
		assert.Equal(t, []string{long + long}, to.texts()[2:], "when there are many")

		write(strings.Repeat("y", 3*writeSize))
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Len(t, to.texts(), 4, "nothing is written twice")
		assert.LessOrEqual(t, cap(w.waiting)+cap(w.spare), 4*writeSize, "no memory is kept for another such line")
		assert.Zero(t, w.lost.Load())
	})
}

// No caller waits for a log that is blocked. Its lines are written in order when the reader continues, and a note
// replaces the dropped lines.
func TestBlockedLogDropsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		to := writes{fail: func(p []byte) (int, error) {
			<-goOn
			return len(p), nil
		}}
		log, err := New(&to, "info")
		require.NoError(t, err)
		w := log.lines
		line := func(n int) []byte { return fmt.Appendf(nil, "%01023d\n", n) }
		const first, kept, lost = writeSize >> 10, maxWaiting >> 10, 7
		for n := range first {
			_, _ = w.Write(line(n))
		}
		synctest.Wait() // these are being written
		for n := range kept + lost {
			_, _ = w.Write(line(first + n))
		}
		assert.EqualValues(t, lost, w.lost.Load())
		require.ErrorIs(t, w.Sync(), errNotWritten)
		close(goOn)
		require.NoError(t, w.Sync())
		_, _ = w.Write([]byte("later\n"))
		require.NoError(t, w.Sync())

		var want strings.Builder
		for n := range first + kept {
			want.Write(line(n))
		}
		got, rest, ok := strings.Cut(strings.Join(to.texts(), ""), "{")
		require.True(t, ok)
		assert.Equal(t, want.String(), got)
		assert.Regexp(t, `^"level":"warn",.*"msg":"log lines are missing here: they could not be written in time","lines":7}\nlater\n$`, rest)
		assert.EqualValues(t, lost, w.lost.Load())
	})
}

// A line that a full disk accepted in part is completed when there is space again.
func TestAFailedWriteIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 5
		to := writes{fail: func(p []byte) (int, error) {
			if failures--; failures < 0 {
				return len(p), nil
			}
			return 1, errors.New("no space left on device")
		}}
		w := &writer{to: &to}
		_, _ = w.Write([]byte("a line\n"))
		_, _ = w.Write([]byte("another\n"))
		assert.ErrorIs(t, w.Sync(), errNotWritten)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "a line\nanother\n", strings.Join(to.texts(), ""))
	})
}

// An error is written at once, without waiting for more lines.
func TestErrorsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to writes
		log, err := New(&to, "info")
		require.NoError(t, err)
		log.Info("one")
		log.Warn("two")
		synctest.Wait()
		assert.Empty(t, to.texts())
		log.Error("three", zap.Int("n", 3))
		synctest.Wait()
		require.Len(t, to.texts(), 1)
		assert.Equal(t, 3, strings.Count(to.texts()[0], "\n"))
		log.Info("four")
		require.NoError(t, log.Sync())
		assert.Len(t, to.texts(), 2)
	})
}

// Of several lines, only one that is longer than the buffer is lost.
func TestALineThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to writes
		w := &writer{to: &to, note: func(lost int) []byte { return fmt.Appendf(nil, "%d lost\n", lost) }}
		for range 2 {
			_, _ = w.Write(make([]byte, maxWaiting+1))
			time.Sleep(writeDelay)
			synctest.Wait()
			_, _ = w.Write([]byte("a\n"))
			require.NoError(t, w.Sync())
		}
		assert.Equal(t, "1 lost\na\n1 lost\na\n", strings.Join(to.texts(), ""))
	})
}
