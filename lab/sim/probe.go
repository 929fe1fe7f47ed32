package sim

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// The round trip of a probe is drawn evenly between these bounds. One of lostOf probes gets no response.
const (
	fastestProbe, slowestProbe = time.Millisecond, 5 * time.Millisecond
	lostOf                     = 100
)

// probe requests the load of upstreams for a job, and returns how long the sidecar waits for the responses.
func (s *sidecar) probe(w *world, j *job, addresses []string, timeout time.Duration) (last time.Duration) {
	for _, address := range addresses {
		w.totals.Probes++
		server := w.servers[w.byName[address]]
		trip := fastestProbe + time.Duration(w.probes.Int64N(int64(slowestProbe-fastestProbe)))
		done := func(load *pool.Hint) { s.dispatch.Probed(w.time(w.now), j.dispatch, address, load) }
		if w.probes.IntN(lostOf) == 0 || trip > timeout || server.failsAfter(w, true) > 0 {
			last = timeout
			w.events.Add(w.now+timeout, rankReport, func() { done(nil) })
			continue
		}
		last = max(last, trip)
		w.events.Add(w.now+trip/2, rankReport, func() {
			load := server.probed(w, j)
			w.events.Add(w.now+trip-trip/2, rankReport, func() { done(load) })
		})
	}
	return last
}

// probed returns the server's response to a probe for the job.
func (s *server) probed(w *world, j *job) *pool.Hint {
	data := key{project: j.project, version: j.Version, phase: feedSource}
	_, coming := s.shared[data]
	load := &pool.Hint{
		At: w.time(w.now), Known: true, Cached: coming || s.cache.has(data),
		Utilization: -1, CoresBusy: float64(s.busy), Waited: -1, Fetched: -1, ByPriority: true,
	}
	load.Running, load.Stalled = s.load()
	return load
}
