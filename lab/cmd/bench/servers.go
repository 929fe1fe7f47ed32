//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/lab/replay"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// servers are reference servers whose joblets sleep for the costs that jobs state.
type servers struct {
	listeners

	probes atomic.Int64

	mu      sync.Mutex
	records map[string]ruleserver.Record // of successful jobs, by session
	refused map[string]bool              // sessions with an attempt that was refused or withdrawn
	fetches int
	twice   int // jobs that ran although they had succeeded
}

// startServers starts servers with a feed for every project and empty caches. order is as in ruleserver.Settings.
func startServers(count, cores int, order string) (*servers, error) {
	s := &servers{records: map[string]ruleserver.Record{}, refused: map[string]bool{}}
	set := ruleserver.Defaults()
	set.Cores, set.TrustCost, set.MaxJobs, set.CacheBytes = cores, true, 10_000, 64<<30 // all data fits
	set.Order = order
	for range count {
		server, err := ruleserver.New(ruleserver.Config{Settings: set, Feeds: example.AnyFeeds(), OnJob: s.record})
		if err == nil {
			err = s.serve(s.countProbes(server.Handler()))
			s.closers = append(s.closers, server.Close)
		}
		if err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *servers) record(r ruleserver.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Facts.Fetch > 0 {
		s.fetches++
	}
	if r.Status/100 != 2 {
		s.refused[r.Session] = true
		return
	}
	if _, ran := s.records[r.Session]; ran {
		s.twice++
	}
	s.records[r.Session] = r
}

// countProbes counts the probes that h gets.
func (s *servers) countProbes(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/load" {
			s.probes.Add(1)
		}
		h.ServeHTTP(w, r)
	})
}

// play sends the jobs when they are due. A job's wait is its duration, counted from when it was due, minus its
// execution at the server, so that it includes waits in a proxy. Waits between its joblets count only in the duration. The time
// that a proxy adds is that of jobs which no server refused.
func (s *servers) play(ctx context.Context, targets []string, jobs []trace.Job) ([]figure, error) {
	ended, err := replay.Run(ctx, replay.Config{Jobs: jobs, Targets: targets})
	if err != nil {
		return nil, err
	}
	s.close() // waits for the last records
	s.mu.Lock()
	defer s.mu.Unlock()
	run, late, added, lost := stats.NewRun(), stats.NewDistribution(), stats.NewDistribution(), 0.0
	for i := range ended {
		r := &ended[i]
		late.Add(r.Late)
		if errors.Is(r.Err, syscall.EMFILE) {
			return nil, fmt.Errorf("the measurement is invalid: bench ran out of file descriptors: %w", r.Err)
		}
		record, ok := s.records[fmt.Sprint(r.Line)]
		if !r.OK() || !ok {
			lost++ // it counts as having waited until its timeout: otherwise a peer that refuses jobs would look fast
			run.Add(r.Job.Priority, max(r.LastByte, r.Job.Timeouts.Queue), 0)
			continue
		}
		if r.Job.Prefetch {
			continue // nobody waits for it
		}
		if !s.refused[record.Session] {
			added.Add(max(0, 1000*(r.LastByte-r.Late-record.Total.Seconds())))
		}
		executed := (record.Total - record.Facts.Wait).Seconds()
		run.Add(r.Job.Priority, max(0, r.LastByte-executed), min(executed, r.LastByte))
	}
	low, per1k := run.Summary(selection.Low, stats.Wait), 1000/float64(max(1, len(ended)))
	return []figure{
		{meanWait, low.Mean},
		{p99Wait, low.P99},
		{"mean wait, high", run.Summary(selection.High, stats.Wait).Mean},
		{meanTime, run.Summary(selection.Low, stats.Duration).Mean},
		{"mean duration, high", run.Summary(selection.High, stats.Duration).Mean},
		{"fetches per 1,000", per1k * float64(s.fetches)},
		{"lost per 1,000", per1k * lost},
		{"run twice", float64(s.twice)},
		{"refused or withdrawn per 1,000", per1k * float64(len(s.refused))},
		{"probes per job", per1k / 1000 * float64(s.probes.Load())},
		{"added ms, p99", added.Summary().P99},
		{"sent late, p99", late.Summary().P99},
	}, nil
}
