//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/lab/replay"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// servers are reference servers whose joblets sleep for what the jobs say they cost.
type servers struct {
	listeners

	mu      sync.Mutex
	records map[string]ruleserver.Record // of jobs that were answered, by session
	fetches int
}

// startServers starts servers that have a feed for every project, and nothing in their caches. order is one of
// ruleserver.Settings.
func startServers(count, cores int, order string) (*servers, error) {
	s := &servers{records: map[string]ruleserver.Record{}}
	set := ruleserver.Defaults()
	set.Cores, set.TrustCost, set.MaxJobs, set.CacheBytes = cores, true, 10_000, 64<<30 // all data fits
	set.Order = order
	for range count {
		server, err := ruleserver.New(ruleserver.Config{Settings: set, Feeds: example.AnyFeeds(), OnJob: s.record})
		if err == nil {
			err = s.serve(server.Handler())
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
	if r.Status/100 == 2 {
		s.records[r.Session] = r
	}
}

// play sends the jobs when they are due. A job's wait is its time, from when it was due to
// its end, without the time for which its server executed it; so it has the wait in a proxy. Waits between
// its joblets are in its duration alone.
func (s *servers) play(ctx context.Context, targets []string, jobs []trace.Job) ([]figure, error) {
	ended, err := replay.Run(ctx, replay.Config{Jobs: jobs, Targets: targets})
	if err != nil {
		return nil, err
	}
	s.close() // waits for the last records
	s.mu.Lock()
	defer s.mu.Unlock()
	run, late, lost := stats.NewRun(), stats.NewDistribution(), 0.0
	for i := range ended {
		r := &ended[i]
		late.Add(r.Late)
		if errors.Is(r.Err, syscall.EMFILE) {
			return nil, fmt.Errorf("it says nothing, bench itself ran out of files: %w", r.Err)
		}
		record, ok := s.records[fmt.Sprint(r.Line)]
		if !r.OK() || !ok {
			lost++ // it waited as long as it may: else who refuses at once would look quick
			run.Add(r.Job.Priority, max(r.LastByte, r.Job.Timeouts.Queue), 0)
			continue
		}
		if r.Job.Prefetch {
			continue // nobody waits for it
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
		{"sent late, p99", late.Summary().P99},
	}, nil
}
