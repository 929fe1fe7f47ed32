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
		assert.LessOrEqual(t, cap(b.lines), 2*logBuffer, "and no memory is kept for another such line")
	})
}

// stuck is a writer that waits to be told to go on.
type stuck struct {
	writes

	begun, goOn chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.begun <- struct{}{}
	<-s.goOn
	return s.writes.Write(p)
}

// A job does not wait while the lines of others are written, and its own line comes after them.
func TestLinesAreTakenInWhileOthersAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{begun: make(chan struct{}, 9), goOn: make(chan struct{})}
		b := &lineBuffer{to: w}
		b.add([]byte("first\n"))
		var synced sync.WaitGroup
		synced.Go(func() { assert.NoError(t, b.Sync()) })
		<-w.begun
		b.add([]byte("second\n"))
		b.add([]byte("third\n"))
		assert.Empty(t, w.texts())
		synced.Go(func() { assert.NoError(t, b.Sync()) })
		close(w.goOn)
		synced.Wait()
		assert.Equal(t, []string{"first\n", "second\nthird\n"}, w.texts())
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
		log, err := New(&w, "info")
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
	log, err := New(io.Discard, "info")
	require.NoError(b, err)
	l := NewJobs(log)
	set := Default()
	r := usualJob()
	b.ReportAllocs()
	for b.Loop() {
		l.Write(time.Now(), set, r)
	}
}
