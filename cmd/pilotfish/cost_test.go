package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"net"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// terse starts an upstream that sends the same response to each request, without allocations.
func terse(t testing.TB) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nX-Load: running=1, stalled=0\r\nContent-Length: 2\r\n\r\nok")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for skipMessage(in) == nil {
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// skipMessage reads a request or response with a Content-Length.
func skipMessage(in *bufio.Reader) error {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err = in.Discard(length)
			return err
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			for _, c := range bytes.TrimRight(value, "\r\n") {
				length = 10*length + int(c-'0')
			}
		}
	}
}

// serving starts a sidecar that does not poll its upstreams, and returns its address for jobs.
func serving(t *testing.T, upstreams ...string) (address string) {
	cfg := before(upstreams...)
	cfg.Reports.Interval, cfg.Reports.Timeout = time.Hour, 2*time.Second
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool { return s.refusal() == nil }, patience, time.Millisecond)
	return p.Jobs.Addr().String()
}

// jobOf4KB is a request with a job of about 4 KB.
func jobOf4KB(project int) []byte {
	body := `{"rules":[` + strings.Repeat(`{"field":"title","action":"set","value":"x"},`, 85) + fmt.Sprintf(`{}],"priority":"low","project_id":%d}`, project)
	return fmt.Appendf(nil, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// The allocations of one job, with its log line and metrics, by number and size. More must be
// justified.
func TestWhatAJobAllocates(t *testing.T) {
	address := serving(t, terse(t))
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	request := jobOf4KB(12345)
	submit := func(jobs int) {
		for range jobs {
			_, err := c.Write(request)
			require.NoError(t, err)
			require.NoError(t, skipMessage(in))
		}
	}
	const jobs = 2000
	submit(jobs)
	number, size := math.Inf(1), math.Inf(1)
	for range 3 { // on a busy machine a round is slow enough for polls to be counted in it
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		submit(jobs)
		runtime.ReadMemStats(&after)
		number = min(number, float64(after.Mallocs-before.Mallocs)/jobs)
		size = min(size, float64(after.TotalAlloc-before.TotalAlloc)/jobs)
	}
	t.Logf("%.1f allocations and %.0f bytes for a job of 4 KB", number, size)
	if raceDetector(t) { // the race detector allocates, and makes pools drop objects at random
		assert.Less(t, number, 50.0)
		assert.Less(t, size, 40_000.0)
		return
	}
	assert.LessOrEqual(t, number, 20.5)
	assert.Less(t, size, 5_000.0)
}

// The memory of one 4 KB job while it waits for its response: its body, the goroutines' stacks,
// and the state of the job and its connections. One KB of it is the test's own, for the other
// ends of the connections.
func TestWhatAWaitingJobHolds(t *testing.T) {
	if raceDetector(t) {
		t.Skip("the race detector takes memory of its own; make test-unit runs this without it, too")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // each processor has its own free stacks and objects
	const upstreams = 20
	var addresses []string
	taken := make(chan net.Conn) // connections with a job
	for range upstreams {
		upstream, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer upstream.Close()
		addresses = append(addresses, upstream.Addr().String())
		go func() {
			for {
				c, err := upstream.Accept()
				if err != nil {
					return
				}
				if skipMessage(bufio.NewReader(c)) == nil { // a connection without a job was one of a report
					taken <- c
				}
			}
		}()
	}
	address := serving(t, addresses...)
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	held := func() (objects, stacks float64) {
		runtime.GC()
		runtime.GC() // the second collection empties the pools
		metrics.Read(samples)
		return float64(samples[0].Value.Uint64()), float64(samples[1].Value.Uint64())
	}
	objects, stacks := held()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no collection before that
	const jobs = 500                                 // other tests leave gaps among the stacks, which a few jobs would fill
	for project := range jobs {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write(jobOf4KB(project))
		require.NoError(t, err)
	}
	for range jobs {
		c := <-taken
		defer c.Close()
	}
	metrics.Read(samples) // a collection would shrink stacks
	grown := (float64(samples[1].Value.Uint64()) - stacks) / jobs
	assert.Less(t, grown, 7_500.0, "bytes of stacks for each job")
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		o, _ := held()
		assert.Less(t, (o-objects)/jobs, 14_000.0, "bytes of objects for each job")
	}, patience, 10*time.Millisecond)
	o, _ := held()
	t.Logf("%.0f bytes of objects and %.0f of stacks for each job", (o-objects)/jobs, grown)
}

// raceDetector reports whether the test runs with the race detector.
func raceDetector(t testing.TB) bool {
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
