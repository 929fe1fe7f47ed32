package metrics

import (
	"fmt"
	"strings"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/quality"
)

// Live is the state that a scrape reports.
type Live struct {
	// View contains each upstream once.
	quality.View
	Discovery Discovery
	// Limited is the number of jobs that wait because their project is at its limit.
	Limited int
	// Bounds are the bounded resources.
	Bounds []Bound
	// CertificateExpires is the earliest expiry of the certificates for upstreams and gateways; zero without one.
	CertificateExpires time.Time
	// Planned is whether the process before this one ended in order; nil if that is not known.
	Planned *bool
	// LogLinesLost is the number of log lines that could not be written in time.
	LogLinesLost uint64
}

// Bound is the use and the limit of one resource.
type Bound struct {
	// Name is the value of a label. It is from a fixed set, and ends with the unit, such as queue_bytes.
	Name        string
	Used, Limit int64
}

// Discovery is the state of service discovery.
type Discovery struct {
	// Age is the time since a set of upstreams was last accepted; negative before the first.
	Age time.Duration
	// Applied and Refused count sets of upstreams. Failed counts requests without a
	// readable response.
	Applied, Refused, Failed uint64
}

// families returns the metrics that are read from the current state at each scrape.
func families() []family {
	return []family{
		perUpstream("pilotfish_upstream_in_flight", "Jobs in flight from this sidecar to the upstream.",
			func(u *quality.Upstream) float64 { return float64(u.InFlight) }),
		perUpstream("pilotfish_upstream_eligible",
			"1 if the upstream can be picked now, else 0. Ignores panic mode and a drain of all upstreams.",
			func(u *quality.Upstream) float64 { return boolean(u.Eligible) }).omitIf(is(1)),
		perUpstream("pilotfish_upstream_down", "1 if the upstream refuses connections, else 0.",
			func(u *quality.Upstream) float64 { return boolean(!u.DownSince.IsZero()) }).omitIf(is(0)),
		perUpstream("pilotfish_upstream_draining",
			"1 if the upstream gets no new jobs because it will stop within 30 s or is being drained, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.IsLeaving()) }).omitIf(is(0)),
		perUpstream("pilotfish_upstream_suspect",
			"1 if the upstream seems to hang: it accepts jobs but sends neither responses nor reports; else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Suspect != "") }).omitIf(is(0)),
		perUpstream("pilotfish_upstream_implausible",
			"1 if the upstream reports impossible numbers, which are ignored, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Implausible != "") }).omitIf(is(0)),
		perUpstream("pilotfish_upstream_slow",
			"1 if the upstream's time to first byte is several times that of other upstreams for the same projects, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Slow != "") }).omitIf(is(0)),
		perUpstream("pilotfish_breaker_state", "State of the upstream's circuit breaker: 0 closed, 1 half open, 2 open.",
			func(u *quality.Upstream) float64 {
				return map[health.State]float64{health.HalfOpen: 1, health.Open: 2}[u.Breaker.State]
			}).omitIf(is(0)),
		perUpstream("pilotfish_overload_level", "Share of jobs that overload detection admits to the upstream: 1 means all, 0 none.",
			func(u *quality.Upstream) float64 { return u.Level }).omitIf(is(1)),
		perUpstream("pilotfish_upstream_cores", "Cores of the upstream; 0 means unknown.",
			func(u *quality.Upstream) float64 { return float64(u.Cores) }).omitIf(always),
		reported("pilotfish_upstream_running", "Running jobs in the upstream's last report.",
			func(u *quality.Upstream) float64 { return u.Running }).omitIf(always),
		reported("pilotfish_upstream_stalled", "Stalled joblets (tasks of jobs waiting for a core) in the upstream's last report.",
			func(u *quality.Upstream) float64 { return u.Stalled }),
		reported("pilotfish_upstream_report_age_seconds", "Age of the upstream's last report; absent before the first.",
			func(u *quality.Upstream) float64 { return u.ReportAge }),
		gauge("pilotfish_fleet_upstreams", "Known upstreams.", func(now *Live, send send) { send(float64(len(now.Upstreams))) }),
		count("pilotfish_fleet_upstreams_eligible", "Upstreams that can be picked now. Ignores panic mode and a drain of all upstreams.",
			func(u *quality.Upstream) bool { return u.Eligible }),
		count("pilotfish_fleet_upstreams_overloaded", "Upstreams to which overload detection does not admit all jobs.",
			func(u *quality.Upstream) bool { return u.Level < 1 }),
		count("pilotfish_fleet_upstreams_idle", "Upstreams with fewer running jobs than cores in their last report.",
			func(u *quality.Upstream) bool { return u.ReportAge >= 0 && u.Running < float64(u.Cores) }),
		gauge("pilotfish_fleet_backlog_imbalance",
			"Most stalled joblets of an upstream beyond the mean of all that report, divided by the mean (at least 1). 0 means balanced; absent without reports.",
			func(now *Live, send send) {
				if imbalance, ok := now.BacklogImbalance(); ok {
					send(imbalance)
				}
			}),
		gauge("pilotfish_panic_mode", "1 while breakers are ignored, else 0. They are ignored while those of all upstreams are open that accept new jobs, or new jobs that are not heavy.",
			func(now *Live, send send) { send(boolean(now.Panic)) }),

		perUpstream("pilotfish_mode", "State of the upstream: "+numbered(quality.AttemptsFail)+". Retries can hide 3 from submitters.",
			func(u *quality.Upstream) float64 { return float64(u.Mode.Number()) }).omitIf(func(mode float64) bool { return mode < 2 }),
		gauge("pilotfish_fleet_mode", "State of the fleet as submitters see it: "+numbered(quality.JobsFail)+".",
			func(now *Live, send send) { send(float64(now.Fleet.Mode.Number())) }),
		gauge("pilotfish_first_deadline_seconds",
			"Seconds until the first job reaches a timeout at the current trend; absent unless pilotfish_fleet_mode is 2 and that is within an hour.",
			func(now *Live, send send) {
				if after := now.Fleet.DeadlineSeconds; after != nil {
					send(*after)
				}
			}),
		gauge("pilotfish_fleet_full",
			"Estimated utilisation of the fleet: cores needed by the jobs of the last minute, divided by the fleet's cores. "+
				"Above 1, the fleet is too small. Absent while unknown.",
			func(now *Live, send send) {
				if c := now.Capacity; c != nil && !c.NeverFull {
					send(c.Full)
				}
			}),
		gauge("pilotfish_fleet_upstreams_needed",
			"Estimated number of upstreams that could serve the busiest minute of the last hour without overload. Absent while unknown.",
			func(now *Live, send send) {
				if c := now.Capacity; c != nil && !c.NeverFull {
					send(float64(c.Needed))
				}
			}),
		gauge("pilotfish_fleet_upstreams_for_target",
			"Number of upstreams that would meet quality.target in the busiest minute of the last hour. Absent without a target.",
			func(now *Live, send send) {
				if c := now.Capacity; c != nil && c.ForTarget != nil {
					send(float64(*c.ForTarget))
				}
			}),
		gauge("pilotfish_queue_limited_jobs",
			"Jobs in the sidecar's queue whose project has reached its limit of jobs in flight (projects.limit).",
			func(now *Live, send send) { send(float64(now.Limited)) }),

		gauge("pilotfish_bound_used", "Current use of each bounded resource of the sidecar. The label contains the unit.",
			func(now *Live, send send) {
				for _, b := range now.Bounds {
					send(float64(b.Used), b.Name)
				}
			}, "bound"),
		gauge("pilotfish_bound_limit", "Limit of each bounded resource of the sidecar.",
			func(now *Live, send send) {
				for _, b := range now.Bounds {
					send(float64(b.Limit), b.Name)
				}
			}, "bound"),

		gauge("pilotfish_discovery_age_seconds",
			"Time since service discovery last returned a valid set of upstreams; absent before the first.",
			func(now *Live, send send) {
				if now.Discovery.Age >= 0 {
					send(now.Discovery.Age.Seconds())
				}
			}),
		counter("pilotfish_discovery_sets_total", "Sets of upstreams from service discovery, by result: applied, or refused as implausible.",
			func(now *Live, send send) {
				send(float64(now.Discovery.Applied), "applied")
				send(float64(now.Discovery.Refused), "refused")
			}, "result"),
		counter("pilotfish_discovery_errors_total", "Failed requests to the source of service discovery: no response, or an unreadable one.",
			func(now *Live, send send) { send(float64(now.Discovery.Failed)) }),
		gauge("pilotfish_certificate_expiry_timestamp_seconds",
			"Expiry of the certificate of upstream_tls.cert_file or mesh.tls, whichever is earlier, as a Unix timestamp; absent without a certificate.",
			func(now *Live, send send) {
				if !now.CertificateExpires.IsZero() {
					send(float64(now.CertificateExpires.Unix()))
				}
			}),
		gauge("pilotfish_planned_start",
			"1 if the process before this one ended in order, 0 if it was killed or crashed; absent unless systemd gives a state directory.",
			func(now *Live, send send) {
				if now.Planned != nil {
					send(boolean(*now.Planned))
				}
			}),
		counter("pilotfish_log_lines_lost_total", "Log lines dropped because they could not be written in time.",
			func(now *Live, send send) { send(float64(now.LogLinesLost)) }),
	}
}

// numbered lists the modes with their numbers, for the help of a metric.
func numbered(worst quality.Mode) string {
	var all []string
	for i, mode := range quality.Modes(worst) {
		all = append(all, fmt.Sprintf("%d %s", i, mode))
	}
	return strings.Join(all, ", ")
}
