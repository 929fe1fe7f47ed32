//go:build !linux

package lazyconn

// Watcher watches nothing here.
type Watcher struct{}

// Watch returns false: WaitForEnd must do.
func (*Watcher) Watch(*Conn, func()) bool { return false }

// Forget has nothing to forget.
func (*Watcher) Forget(*Conn) {}

// Close has nothing to close.
func (*Watcher) Close() {}
