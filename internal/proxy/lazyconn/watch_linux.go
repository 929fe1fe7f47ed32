package lazyconn

import (
	"errors"
	"math"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Watcher waits for the ends of many connections with one goroutine and one
// descriptor (epoll). The zero value is ready. It is safe for concurrent use.
type Watcher struct {
	mu      sync.Mutex
	file    *os.File // the epoll instance; nil before the first Watch
	fd      int      // its descriptor
	closed  bool
	watched map[int32]watched // by descriptor
}

type watched struct {
	conn  *Conn
	ended func()
}

// Watch calls ended when the other side of c has ended the connection. It reads nothing,
// and it stops watching when the other side sends something. It returns false if it
// cannot watch c: WaitForEnd can. ended must not block, and not call the Watcher.
// Until Forget, nothing may be read from c.
func (w *Watcher) Watch(c *Conn, ended func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.file == nil && w.open() != nil {
		return false
	}
	ok := false
	_ = c.raw.Control(func(fd uintptr) { // fails only on a closed connection
		if fd > math.MaxInt32 {
			return
		}
		// The event is edge-triggered: each comes once.
		e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd)}
		if err := unix.EpollCtl(w.fd, unix.EPOLL_CTL_ADD, int(fd), &e); err != nil {
			return
		}
		ok, c.watchedAs = true, e.Fd
		w.watched[e.Fd] = watched{c, ended}
	})
	return ok
}

// Forget ends the watch of c, if there is one. Afterwards, ended is not called anymore.
func (w *Watcher) Forget(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(c)
}

// forget is Forget. The lock must be held.
func (w *Watcher) forget(c *Conn) {
	if w.watched[c.watchedAs].conn != c {
		return // it was forgotten before; or c was closed, and another has its descriptor
	}
	delete(w.watched, c.watchedAs)
	if !w.closed {
		// This fails only on a closed connection, which epoll has forgotten.
		_ = c.raw.Control(func(fd uintptr) { _ = unix.EpollCtl(w.fd, unix.EPOLL_CTL_DEL, int(fd), nil) })
	}
}

// Close ends all watches.
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		_ = w.file.Close() // there is nothing to lose
	}
	w.closed, w.watched = true, nil
}

// open makes the epoll instance, and starts the goroutine. The lock must be held.
func (w *Watcher) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	_ = unix.SetNonblock(fd, true) // if this fails, so does what follows
	file := os.NewFile(uintptr(fd), "epoll")
	err = file.SetReadDeadline(time.Time{}) // tells whether Go's own poller takes it
	raw, rawErr := file.SyscallConn()
	if err = errors.Join(err, rawErr); err != nil {
		return errors.Join(err, file.Close())
	}
	w.file, w.fd, w.watched = file, fd, make(map[int32]watched)
	go w.run(raw)
	return nil
}

// run waits for events until Close.
func (w *Watcher) run(epoll syscall.RawConn) {
	events := make([]unix.EpollEvent, 64)
	for {
		n := 0
		err := epoll.Read(func(fd uintptr) bool {
			var err error
			n, err = unix.EpollWait(int(fd), events, 0)
			return n > 0 || err != nil
		})
		if err != nil {
			return
		}
		w.look(events[:max(n, 0)])
	}
}

// look looks at the connections of which something was heard.
func (w *Watcher) look(events []unix.EpollEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		one, ok := w.watched[e.Fd]
		if !ok {
			continue // it was forgotten meanwhile
		}
		ended, over := false, true
		_ = one.conn.raw.Control(func(fd uintptr) { // fails only on a closed connection
			ended, over = endOf(fd)
		})
		if !over {
			continue // the event was that of an earlier connection
		}
		w.forget(one.conn)
		if ended {
			one.ended()
		}
	}
}
