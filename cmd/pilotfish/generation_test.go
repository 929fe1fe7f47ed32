package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/config"
)

// With reports.prometheus the pool's load comes from there, and an
// upstream is asked for nothing but its listing.
func TestReportsFromPrometheus(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if assert.Equal(t, "/v1/cache/projects", r.URL.Path) {
			fmt.Fprint(w, `{"projects":[{"id":1},{"id":2}]}`)
		}
	}))
	defer upstream.Close()
	address := upstream.Listener.Addr().String()
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := float64(time.Now().UnixMilli()) / 1e3
		var elements []string
		for labels, value := range map[string]float64{
			`"pilotfish":"stalled"`: 7, `"pilotfish":"running"`: 12, `"pilotfish":"scraped"`: now,
		} {
			elements = append(elements, fmt.Sprintf(`{"metric":{%s,"instance":%q},"value":[%f,"%f"]}`, labels, address, now, value))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(elements, ","))
	}))
	defer prometheus.Close()

	cfg := config.Default()
	cfg.Discovery.Static = []string{address}
	cfg.Reports.Interval, cfg.Reports.Timeout = 50*time.Millisecond, time.Minute
	cfg.Reports.Prometheus = prometheus.URL
	requireUsable(t, &cfg)
	s, err := newSidecar(&cfg, nil, quiet(t))
	require.NoError(t, err)
	s.start(context.Background())
	defer s.stop()

	require.Eventually(t, func() bool {
		states := s.balancer.States()
		return len(states) == 1 && states[0].Running == 12 && states[0].Stalled == 7 && states[0].Cached == 2
	}, time.Minute, 10*time.Millisecond)
}
