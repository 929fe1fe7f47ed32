package logging

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

// writes are the writes that a log made.
type writes struct {
	err error

	mu   sync.Mutex
	made []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = append(w.made, string(p))
	return len(p), w.err
}

func (w *writes) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.made)
}

func TestLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w writes
		b := &lineBuffer{to: &w}
		write := func(line string) {
			n, err := b.Write([]byte(line))
			require.NoError(t, err)
			require.Equal(t, len(line), n)
		}
		write("a\n")
		time.Sleep(logDelay / 2)
		write("b\n")
		assert.Empty(t, w.texts())
		time.Sleep(logDelay/2 + 1)
		synctest.Wait()
		assert.Equal(t, []string{"a\nb\n"}, w.texts(), "in time")

		write("c\n")
		require.NoError(t, b.Sync())
		require.NoError(t, b.Sync())
		assert.Equal(t, []string{"c\n"}, w.texts()[1:], "at Sync, once")

		long := strings.Repeat("x", logBuffer/2) + "\n"
		write(long)
		write(long)
		assert.Equal(t, []string{long}, w.texts()[2:], "when the next does not fit")
		time.Sleep(logDelay)
		synctest.Wait()
		assert.Equal(t, []string{long, long}, w.texts()[2:])

		huge := strings.Repeat("y", 3*logBuffer) + "\n"
		write("d\n")
		write(huge)
		assert.Equal(t, []string{"d\n", huge}, w.texts()[4:])
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Len(t, w.texts(), 6, "and nothing twice")
	})
}

func TestALineThatCannotBeWrittenIsTold(t *testing.T) {
	full := errors.New("no space left on device")
	b := &lineBuffer{to: &writes{err: full}}
	_, err := b.Write([]byte("a\n"))
	require.NoError(t, err)
	require.ErrorIs(t, b.Sync(), full)
	require.NoError(t, b.Sync())
}

// An error is written at once, with all that came before it.
func TestErrorsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w writes
		log, _, err := New(&w, "info")
		require.NoError(t, err)
		log.Info("one")
		log.Warn("two")
		assert.Empty(t, w.texts())
		log.Error("three", zap.Int("n", 3))
		require.Len(t, w.texts(), 1)
		assert.Equal(t, 3, strings.Count(w.texts()[0], "\n"))
		log.Info("four")
		require.NoError(t, log.Sync())
		assert.Len(t, w.texts(), 2)
	})
}

func BenchmarkJobLine(b *testing.B) {
	log, _, err := New(io.Discard, "info")
	require.NoError(b, err)
	l := NewJobs(log)
	set := Default()
	r := &record.Job{
		Facts: intake.Facts{Project: intake.NewText("12345")}, Status: 200, Outcome: intake.Answered,
		Attempts: []record.Attempt{{Upstream: "127.0.0.1:9001", End: 123456 * time.Microsecond}},
		TTFB:     12345 * time.Microsecond, Total: 123456 * time.Microsecond,
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Write(set, r)
	}
}
