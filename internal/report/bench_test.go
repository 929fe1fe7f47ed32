package report

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// BenchmarkPoll is a whole poll without the network. held-MB is what the listing holds.
func BenchmarkPoll(b *testing.B) {
	for _, projects := range []int{100, 2000, 100_000} {
		b.Run(fmt.Sprintf("projects=%d", projects), func(b *testing.B) {
			page, listing := goodPage, listingOf(projects)
			c := testConfig()
			c.Transport = carrier(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/metrics" {
					return respond(http.StatusOK, strings.NewReader(page)), nil
				}
				return respond(http.StatusOK, bytes.NewReader(listing)), nil
			})
			c.Report = func(_ string, r pool.Report) { require.Equal(b, projects, r.Cached.Len()) }
			c.Failed = func(_ string, err error) { b.Error(err) }
			u := newPoller(c).upstream("upstream:1")
			before := heap()
			b.ReportAllocs()
			b.SetBytes(int64(len(page) + len(listing)))
			for b.Loop() {
				u.poll(context.Background(), false)
			}
			b.ReportMetric((heap()-before)/1e6, "held-MB")
			runtime.KeepAlive(u)
		})
	}
}

// heap returns the bytes in use on the heap.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkWorstPage reads the most expensive page within the bounds.
func BenchmarkWorstPage(b *testing.B) {
	page := strings.Repeat("a{b=\"c\",d=\"e\",f=\"g\"} 1\n", maxPageLines)
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		_, err := readPage(http.Header{}, strings.NewReader(page), maxPageLines, read(Default().Names))
		require.NoError(b, err)
	}
}

func BenchmarkHint(b *testing.B) {
	s := Default()
	h := http.Header{"X-Load": {"at=1763677245.123, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9"}}
	b.ReportAllocs()
	for b.Loop() {
		_, ok := s.Hint(h, noon)
		require.True(b, ok)
	}
}
