package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/fakeupstream"
)

// Each job waits half a second longer than the one before; at last three are lost, and
// then all is well.
func TestModesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		s := newServed(zap.New(core))
		states := []pool.State{{Upstream: pool.Upstream{Address: "a:1"}}}
		s.look(time.Now(), states)
		job := func(firstByte time.Duration, o intake.Outcome, c intake.Completeness) {
			now := time.Now()
			arrived := now.Add(-firstByte)
			if c != intake.Absent {
				s.began(now, &dispatch.Job{
					Request: dispatch.Request{Arrived: arrived}, FirstByte: time.Minute, Deadline: arrived.Add(40 * time.Second),
				}, pool.Choice{Address: "a:1", Claimed: arrived})
			}
			s.ended(now, &quality.Job{Arrived: arrived, Outcome: o, Completeness: c, FirstByte: firstByte, LastByte: firstByte, Waited: -1})
			time.Sleep(time.Second)
			s.look(time.Now(), states)
		}
		for i := range 60 {
			job(time.Duration(i)*500*time.Millisecond, intake.Answered, intake.Complete)
		}
		fleet, _ := s.statuses()
		assert.Equal(t, quality.Growing, fleet.Mode)
		require.NotNil(t, fleet.DeadlineSeconds)
		assert.InDelta(t, 20, *fleet.DeadlineJobs, 2, "the deadline counts: it is before the bound on the first byte")
		for range 3 {
			job(time.Second, intake.Deadline, intake.Absent)
		}
		for range 120 {
			job(time.Second, intake.Answered, intake.Complete)
		}

		var told []string
		for _, line := range logs.All() {
			fields := line.ContextMap()
			if _, ok := fields["upstream"]; !ok {
				told = append(told, line.Level.String()+": "+fields["from"].(string)+" to "+fields["to"].(string))
				assert.NotEmpty(t, fields["cause"])
			}
		}
		assert.Equal(t, []string{"warn: flat to growing", "warn: growing to losing", "info: losing to flat"}, told)
		of := s.Summary().Upstreams
		require.Len(t, of, 1)
		assert.Equal(t, "a:1", of[0].Upstream)
		assert.Equal(t, quality.Flat, of[0].Mode)
	})
}

// What a job through the sidecar leaves behind is the same on the admin port and in the metrics.
func TestQualityOfAJob(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	cfg, _ := fileConfig(t, upstream.Address())
	s, _ := logged(t, &cfg)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.start(ctx)
	defer s.stop()
	require.Eventually(t, func() bool { return len(s.balancer.States()) == 1 }, patience, time.Millisecond)
	s.served.look(time.Now(), s.balancer.States())

	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/jobs", strings.NewReader(fakeupstream.ExampleJob()))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())

	admin, err := s.admin(nil)
	require.NoError(t, err)
	get := func(path string) string {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	var sum struct {
		Fleet struct {
			Windows []struct{ High quality.Figures }
		}
		Upstreams []struct {
			Upstream string
			Mode     string
			Windows  []struct{ High quality.Figures }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(get("/api/quality")), &sum))
	high := sum.Fleet.Windows[0].High
	assert.Equal(t, uint64(1), high.Complete)
	assert.Equal(t, uint64(1), high.Stretch.Count, "the reference server tells the wait")
	require.Len(t, sum.Upstreams, 1)
	assert.Equal(t, upstream.Address(), sum.Upstreams[0].Upstream)
	assert.Equal(t, uint64(1), sum.Upstreams[0].Windows[0].High.Complete)
	page := get("/metrics")
	assert.Contains(t, page, `pilotfish_answers_total{complete="complete"} 1`)
	assert.Contains(t, page, `pilotfish_job_stretch_count{priority="high"} 1`)
	assert.Contains(t, page, `pilotfish_mode{upstream="`+upstream.Address()+`"} 0`)
}
