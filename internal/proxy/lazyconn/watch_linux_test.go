package lazyconn

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// watchedBy is what a watcher keeps of connections.
func watchedBy(w *Watcher) map[int32]watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.watched)
}

// An event may be older than the watch that it is taken for, or than its end.
func TestEventsThatComeLate(t *testing.T) {
	w := newWatcher(t)
	here, there := pair(t, "tcp", "127.0.0.1:0")
	ended := watch(t, w, here)
	assert.False(t, w.Watch(here, func() {}), "it is watched already")
	late := []unix.EpollEvent{{Fd: here.watchedAs}, {Fd: here.watchedAs + 1}}
	w.look(late)
	assert.Len(t, watchedBy(w), 1, "nothing has come yet")
	require.NoError(t, there.Close())
	heard(t, ended)
	w.Forget(here)
	w.look(late)
	assert.Empty(t, ended)

	here, _ = pair(t, "tcp", "127.0.0.1:0")
	watch(t, w, here)
	require.NoError(t, here.Close())
	w.look([]unix.EpollEvent{{Fd: here.watchedAs}})
	assert.Empty(t, watchedBy(w), "it was closed here")

	here, _ = pair(t, "tcp", "127.0.0.1:0")
	watch(t, w, here)
	w.Forget(here)
	assert.Empty(t, watchedBy(w), "it was forgotten")
	watch(t, w, here)
	w.Close()
	assert.Empty(t, watchedBy(w), "the watcher was closed")
}
