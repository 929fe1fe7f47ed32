package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// Live is the state at one instant that a scrape shows.
type Live struct {
	// Upstreams are those in the pool, each once.
	Upstreams []pool.State
	// Fleet says how jobs are served, and Quality how each upstream serves them, by its address.
	Fleet     quality.Status
	Quality   map[string]quality.Status
	Discovery Discovery
	// Capture is what was written of jobs, and what was lost.
	Capture Capture
	// Capacity is what the fleet can do and needs; nil where that is not known.
	Capacity *capacity.Advice
	// Limited is how many jobs wait because their project is at its limit.
	Limited int
	// Bodies is the bytes that are kept for retries, QueueBytes those that wait in the
	// sidecar, and Connections are those of submitters and operators, by port.
	Bodies, QueueBytes Bounded
	Connections        map[string]Bounded
	// HeadBytes is what the heads take that arrive, and HeadsRefused how many found no room.
	HeadBytes    Bounded
	HeadsRefused uint64
	// QueueJobs is how many jobs may wait. How many do is counted at the event.
	QueueJobs int
	// Idle is how many connections to an upstream wait for the next job, by its address.
	Idle map[string]int
}

// Bounded is how much is taken of something, and how much may be.
type Bounded struct{ Taken, Most int64 }

// Discovery is what discovery has done so far.
type Discovery struct {
	// Age is the time since a set was last accepted; negative when none ever was.
	Age time.Duration
	// Applied and Refused count sets of upstreams. Failed counts requests without a
	// reply that could be read.
	Applied, Refused, Failed uint64
}

// Capture counts the lines of jobs that were captured.
type Capture struct{ Written, Lost uint64 }

// Source returns the state at now. It must be safe for concurrent use, quick,
// and change nothing.
type Source func(now time.Time) Live

// live is a collector that reads the state from a Source at each scrape, so that
// an upstream's series end when it leaves.
type live struct {
	source atomic.Pointer[Source]
	descs  []*prometheus.Desc // of all figures

	inFlight, stalled, reportAge, eligible, breaker, level figure
	running, cores, cached, draining, idle                 figure
	suspect, implausible                                   figure
	mode, fleetMode, slope, deadline, imbalance            figure
	bodyBytes, bodyBytesLimit, conns, connsLimit           figure
	queueBytes, queueBytesLimit, queueJobsLimit            figure
	headBytes, headBytesLimit, headsRefused                figure
	discoveryAge, limited, full, needed                    figure
	discoverySets, discoveryErrors, captured               figure
}

func newLive(r registrar) *live {
	var descs []*prometheus.Desc
	add := func(kind prometheus.ValueType, name, help string, labels []string) figure {
		descs = append(descs, prometheus.NewDesc(name, help, labels, nil))
		return figure{descs[len(descs)-1], kind}
	}
	gauge := func(name, help string, labels ...string) figure {
		return add(prometheus.GaugeValue, name, help, labels)
	}
	counter := func(name, help string, labels ...string) figure {
		return add(prometheus.CounterValue, name, help, labels)
	}
	l := &live{
		inFlight:        gauge("pilotfish_upstream_in_flight", "Jobs sent there by this sidecar and not finished.", "upstream"),
		stalled:         gauge("pilotfish_upstream_stalled", "Stalled joblets in the upstream's last report.", "upstream"),
		running:         gauge("pilotfish_upstream_running", "Running jobs in the upstream's last report.", "upstream"),
		cores:           gauge("pilotfish_upstream_cores", "Cores of the upstream; 0 is unknown.", "upstream"),
		cached:          gauge("pilotfish_upstream_cached_projects", "Projects in the upstream's last cache listing.", "upstream"),
		draining:        gauge("pilotfish_upstream_draining", "1 if the upstream gets no new jobs because it leaves or an operator drains it, else 0.", "upstream"),
		idle:            gauge("pilotfish_upstream_idle_connections", "Connections to the upstream that wait for the next job.", "upstream"),
		reportAge:       gauge("pilotfish_upstream_report_age_seconds", "Age of the upstream's last report; absent when there was none.", "upstream"),
		eligible:        gauge("pilotfish_upstream_eligible", "1 if the upstream may be picked now, panic mode and a drain of all upstreams aside, else 0.", "upstream"),
		suspect:         gauge("pilotfish_upstream_suspect", "1 if the upstream takes jobs but gives neither answers nor reports, as far as can be told, else 0.", "upstream"),
		implausible:     gauge("pilotfish_upstream_implausible", "1 if the upstream reports figures that cannot be true and count as unknown, else 0.", "upstream"),
		breaker:         gauge("pilotfish_breaker_state", "0 closed, 1 half open, 2 open.", "upstream"),
		level:           gauge("pilotfish_overload_level", "Which jobs the upstream may take for its load: 1 is all, 0 is none.", "upstream"),
		mode:            gauge("pilotfish_mode", "How the upstream serves its jobs: 0 too few to tell, 1 flat, 2 growing, 3 losing.", "upstream"),
		fleetMode:       gauge("pilotfish_fleet_mode", "How all jobs are served: 0 too few to tell, 1 flat, 2 growing, 3 losing."),
		slope:           gauge("pilotfish_first_byte_slope_seconds", "By how much the time to first byte rises from one job to the next; absent while it is not known."),
		deadline:        gauge("pilotfish_first_deadline_seconds", "In what time a job will first have waited as long as it may, if times rise on; absent unless the fleet's mode is growing."),
		imbalance:       gauge("pilotfish_backlog_imbalance", "How far the jobs for each core at an upstream are from the mean of all, over that mean; 0 is even."),
		discoveryAge:    gauge("pilotfish_discovery_age_seconds", "Time since discovery last accepted a set of upstreams; absent before the first."),
		limited:         gauge("pilotfish_queue_limited_jobs", "Jobs that wait in the sidecar because their project has as many in flight as it may have."),
		full:            gauge("pilotfish_fleet_full", "The cores that jobs needed in the last minute, over those of the fleet, as far as this sidecar can tell; above 1 the fleet is too small. Absent while it is not known."),
		needed:          gauge("pilotfish_fleet_upstreams_needed", "How many upstreams would serve the busiest minute of the last hour, every job alike (flat), or with the median first byte within quality.first_byte.", "to_keep"),
		bodyBytes:       gauge("pilotfish_body_bytes", "Bytes of the bodies kept for retries, and of long heads."),
		headBytes:       gauge("pilotfish_head_bytes", "Bytes that the heads take which have begun to arrive and have not ended, beyond 4 KiB of each."),
		headBytesLimit:  gauge("pilotfish_head_bytes_limit", "Bytes that these may take: submitters.heads."),
		headsRefused:    counter("pilotfish_heads_refused_total", "Connections closed because the head that arrived there found no room."),
		bodyBytesLimit:  gauge("pilotfish_body_bytes_limit", "Bytes that the bodies kept for retries may take: job.budget."),
		queueBytes:      gauge("pilotfish_queue_bytes", "Bytes of the bodies of the jobs that wait in the sidecar."),
		queueBytesLimit: gauge("pilotfish_queue_bytes_limit", "Bytes that these may take: queue.bytes."),
		queueJobsLimit:  gauge("pilotfish_queue_jobs_limit", "Jobs that may wait in the sidecar: queue.jobs."),
		conns:           gauge("pilotfish_connections", "Connections that are open at a port of the sidecar.", "port"),
		connsLimit:      gauge("pilotfish_connections_limit", "Connections that may be open there; further ones wait to be accepted.", "port"),
		discoverySets:   counter("pilotfish_discovery_sets_total", "Changes of the set of upstreams, and sets refused as doubtful.", "result"),
		captured:        counter("pilotfish_capture_jobs_total", "Jobs with a line in the capture, and jobs whose line was lost because it could not be written in time.", "result"),
		discoveryErrors: counter("pilotfish_discovery_errors_total", "Requests to discovery's source without a reply that could be read."),
	}
	l.descs = descs
	r.MustRegister(l)
	return l
}

// SetSource says where live state is read from; before, a scrape has none.
func (l *live) SetSource(s Source) { l.source.Store(&s) }

// Describe implements prometheus.Collector.
func (l *live) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range l.descs {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (l *live) Collect(ch chan<- prometheus.Metric) {
	source := l.source.Load()
	if source == nil {
		return
	}
	now := (*source)(time.Now())
	for _, u := range now.Upstreams {
		l.collectUpstream(ch, u)
		l.idle.send(ch, float64(now.Idle[u.Address]), u.Address)
		l.mode.send(ch, float64(now.Quality[u.Address].Mode), u.Address)
	}
	l.fleetMode.send(ch, float64(now.Fleet.Mode))
	if now.Fleet.Trend.Jobs > 0 {
		l.slope.send(ch, now.Fleet.Trend.Slope)
	}
	if after := now.Fleet.DeadlineSeconds; after != nil {
		l.deadline.send(ch, *after)
	}
	l.imbalance.send(ch, quality.Imbalance(now.Upstreams))
	if now.Discovery.Age >= 0 {
		l.discoveryAge.send(ch, now.Discovery.Age.Seconds())
	}
	l.limited.send(ch, float64(now.Limited))
	if c := now.Capacity; c != nil {
		l.full.send(ch, c.Now.Full)
		l.needed.send(ch, float64(c.Flat.Upstreams), "flat")
		if c.Bounded != nil {
			l.needed.send(ch, float64(c.Bounded.Upstreams), "first_byte")
		}
	}
	l.bodyBytes.send(ch, float64(now.Bodies.Taken))
	l.bodyBytesLimit.send(ch, float64(now.Bodies.Most))
	l.headBytes.send(ch, float64(now.HeadBytes.Taken))
	l.headBytesLimit.send(ch, float64(now.HeadBytes.Most))
	l.headsRefused.send(ch, float64(now.HeadsRefused))
	l.queueBytes.send(ch, float64(now.QueueBytes.Taken))
	l.queueBytesLimit.send(ch, float64(now.QueueBytes.Most))
	l.queueJobsLimit.send(ch, float64(now.QueueJobs))
	for port, c := range now.Connections {
		l.conns.send(ch, float64(c.Taken), port)
		l.connsLimit.send(ch, float64(c.Most), port)
	}
	l.discoverySets.send(ch, float64(now.Discovery.Applied), "applied")
	l.discoverySets.send(ch, float64(now.Discovery.Refused), "refused")
	l.captured.send(ch, float64(now.Capture.Written), "written")
	l.captured.send(ch, float64(now.Capture.Lost), "lost")
	l.discoveryErrors.send(ch, float64(now.Discovery.Failed))
}

func (l *live) collectUpstream(ch chan<- prometheus.Metric, u pool.State) {
	l.inFlight.send(ch, float64(u.InFlight), u.Address)
	l.eligible.send(ch, boolean(u.Eligible), u.Address)
	l.suspect.send(ch, boolean(u.Suspect != ""), u.Address)
	l.implausible.send(ch, boolean(u.Implausible != ""), u.Address)
	l.breaker.send(ch, float64(u.Breaker.State), u.Address)
	l.level.send(ch, u.Level, u.Address)
	l.cores.send(ch, float64(u.Cores), u.Address)
	l.cached.send(ch, float64(u.Cached), u.Address)
	l.draining.send(ch, boolean(u.Draining || u.Drained), u.Address)
	if u.ReportAge >= 0 {
		l.reportAge.send(ch, u.ReportAge, u.Address)
		l.running.send(ch, u.Running, u.Address)
		l.stalled.send(ch, u.Stalled, u.Address)
	}
}

// figure is a metric whose value is known only at a scrape.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends the figure's value; one that Prometheus cannot show, for a label
// that is not UTF-8, becomes an error of the scrape.
func (f figure) send(ch chan<- prometheus.Metric, value float64, labels ...string) {
	m, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	ch <- m
}
