//go:build linux

package e2e

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// trace counts the system calls of a process by number, until enough. It calls ready when it traces all threads. The goroutine
// must be locked to its thread, which is the tracer.
func trace(pid int, enough func(calls map[uint64]int) bool, ready func()) (calls map[uint64]int, _ error) {
	const syscallInfo, syscallStop = 0x420e, unix.SIGTRAP | 0x80
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err = errors.Join(err, unix.PtraceSeize(tid), unix.PtraceInterrupt(tid)); err != nil {
			return nil, err
		}
	}
	traced := map[int]bool{}
	calls = map[uint64]int{}
	for !enough(calls) {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case err != nil:
			return nil, err
		case !status.Stopped():
			continue
		}
		signal := 0
		switch stop := status.StopSignal(); {
		case stop == syscallStop:
			var info [88]byte // its first byte is 1 when a call starts
			if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, syscallInfo, uintptr(tid), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 {
				return nil, errno
			}
			if info[0] == 1 {
				calls[binary.NativeEndian.Uint64(info[24:])]++
			}
		case status>>16 != 0: // a stop of the tracer's own
			if err := unix.PtraceSetOptions(tid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE); err != nil {
				return nil, err
			}
			if traced[tid] = true; len(traced) == len(tasks) {
				ready()
			}
		default:
			signal = int(stop)
		}
		if err := unix.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return nil, err
		}
	}
	for tid := range traced {
		if unix.PtraceInterrupt(tid) != nil {
			continue // it has ended
		}
		if _, err := unix.Wait4(tid, nil, unix.WALL, nil); err != nil {
			return nil, err
		}
		_ = unix.PtraceDetach(tid) // it fails if the thread has ended
	}
	return calls, nil
}

// A job takes at most six system calls on its two connections. On each, one sends, one receives, and one before the wait finds
// that there is nothing to receive. At the upstream, the latter also detects a response that no request has caused.
func TestSystemCallsOfAJob(t *testing.T) {
	upstream := handling(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, "ok")
	})
	s := start(t, options(t, "reports: {interval: 1h}\n", upstream)...)
	c, err := net.Dial("tcp", s.jobs)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	submit := func() {
		body := `{"rules":[` + strings.Repeat(`{"set":"x"},`, 300) + `{}],"project_id":7}`
		fmt.Fprintf(c, "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		for line := ""; line != "ok\n"; {
			line, err = in.ReadString('\n')
			require.NoError(t, err)
		}
	}
	for range 10 {
		submit()
	}
	const jobs = 200
	ready, ended := make(chan struct{}), make(chan error, 1)
	var calls map[uint64]int
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		calls, err = trace(s.Cmd.Process.Pid, func(c map[uint64]int) bool { return c[unix.SYS_SENDTO] >= 2*jobs }, sync.OnceFunc(func() { close(ready) }))
		ended <- err
	}()
	select {
	case <-ready:
	case err := <-ended:
		require.NoError(t, err)
	}
	for range jobs {
		submit()
	}
	require.NoError(t, <-ended)
	t.Logf("%v", calls)
	assert.Equal(t, 2*jobs, calls[unix.SYS_SENDTO])
	assert.LessOrEqual(t, calls[unix.SYS_RECVFROM], 4*jobs+jobs/10)
	assert.Less(t, calls[unix.SYS_READ]+calls[unix.SYS_WRITE], jobs, "the log, and wake-ups of the poller")
}
