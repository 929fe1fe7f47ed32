package report

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

func listingOf(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"projects":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"version":3,"bytes":52428800,"age_seconds":%d.5}`, 100_000+i, n-i)
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

// BenchmarkPoll is a whole poll but for the network.
func BenchmarkPoll(b *testing.B) {
	for _, projects := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("projects=%d", projects), func(b *testing.B) {
			page, listing := goodPage, listingOf(projects)
			p, err := New(Config{Transport: carrier(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/metrics" {
					return respond(http.StatusOK, strings.NewReader(page)), nil
				}
				return respond(http.StatusOK, bytes.NewReader(listing)), nil
			})}, rand.New(rand.NewPCG(1, 2)), func(_ string, r pool.Report) {
				require.Equal(b, projects, r.Cached.Len())
			}, func(_ string, err error) { b.Error(err) })
			require.NoError(b, err)
			f := newFollower(p, "upstream:1")
			b.ReportAllocs()
			b.SetBytes(int64(len(page) + len(listing)))
			for b.Loop() {
				f.poll(context.Background())
			}
		})
	}
}

// BenchmarkWorstPage is the page that costs most within the default bounds.
func BenchmarkWorstPage(b *testing.B) {
	page := strings.Repeat("a{b=\"c\",d=\"e\",f=\"g\"} 1\n", 50_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		_, err := readPage(http.Header{}, strings.NewReader(page), 50_000)
		require.NoError(b, err)
	}
}

func BenchmarkContains(b *testing.B) {
	projects, err := readListing(bytes.NewReader(listingOf(100_000)), 1_000_000, 0)
	require.NoError(b, err)
	keys := make([]uint64, 1<<16)
	for i := range keys {
		keys[i] = intake.Key(fmt.Sprint(50_000 + i)) // some of them are there
	}
	b.ReportAllocs()
	i, found := 0, 0
	for b.Loop() {
		if projects.Contains(keys[i&(1<<16-1)]) {
			found++
		}
		i++
	}
	require.LessOrEqual(b, found, i)
}

func BenchmarkParseHint(b *testing.B) {
	h := http.Header{"X-Load": {"at=1763677245.123, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9"}}
	b.ReportAllocs()
	for b.Loop() {
		_, ok := ParseHint(h, noon)
		require.True(b, ok)
	}
}
