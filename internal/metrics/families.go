package metrics

import (
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// families are the metrics that a scrape reads from the state of the moment.
func families() []family {
	return []family{
		perUpstream("pilotfish_upstream_in_flight", "Jobs sent there by this sidecar and not finished.",
			func(u *quality.Upstream) float64 { return float64(u.InFlight) }),
		perUpstream("pilotfish_upstream_eligible",
			"1 if the upstream may be picked now, panic mode and a drain of all upstreams aside, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Eligible) }),
		perUpstream("pilotfish_upstream_draining",
			"1 if the upstream gets no new jobs because it stops within 30 s, drains, or is drained by an operator, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Leaves()) }),
		perUpstream("pilotfish_upstream_suspect",
			"1 if the upstream takes jobs but gives neither answers nor reports, as far as can be told, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Suspect != "") }),
		perUpstream("pilotfish_upstream_implausible",
			"1 if the upstream reports figures that cannot be true and count as unknown, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Implausible != "") }),
		perUpstream("pilotfish_upstream_slow",
			"1 if responses take several times as long to begin there as at other upstreams, for the same projects, else 0.",
			func(u *quality.Upstream) float64 { return boolean(u.Slow != "") }),
		perUpstream("pilotfish_breaker_state", "0 closed, 1 half open, 2 open.",
			func(u *quality.Upstream) float64 {
				return map[pool.BreakerState]float64{pool.BreakerHalfOpen: 1, pool.BreakerOpen: 2}[u.Breaker.State]
			}),
		perUpstream("pilotfish_overload_level", "Which jobs the upstream may take for its load: 1 is all, 0 is none.",
			func(u *quality.Upstream) float64 { return u.Level }),
		perUpstream("pilotfish_upstream_cores", "Cores of the upstream; 0 is unknown.",
			func(u *quality.Upstream) float64 { return float64(u.Cores) }),
		reported("pilotfish_upstream_running", "Running jobs in the upstream's last report.",
			func(u *quality.Upstream) float64 { return u.Running }),
		reported("pilotfish_upstream_stalled", "Stalled joblets in the upstream's last report.",
			func(u *quality.Upstream) float64 { return u.Stalled }),
		gauge("pilotfish_backlog_imbalance",
			"Stalled joblets of the upstream less the mean of all upstreams that report, divided by the mean, or by 1 if it is less. 0 is even.",
			func(now *Live, send send) { now.BacklogImbalance(func(address string, x float64) { send(x, address) }) }, "upstream"),
		reported("pilotfish_upstream_report_age_seconds", "Age of the upstream's last report; absent when there was none.",
			func(u *quality.Upstream) float64 { return u.ReportAge }),
		gauge("pilotfish_panic_mode", "1 while breakers are ignored because those of all upstreams that take new jobs are open, else 0.",
			func(now *Live, send send) { send(boolean(now.Panic)) }),

		perUpstream("pilotfish_mode", "Mode of the upstream: 0 unknown, 1 steady, 2 queue grows, 3 attempts fail. Retries may hide 3 from submitters.",
			func(u *quality.Upstream) float64 { return float64(u.Mode.Number()) }),
		gauge("pilotfish_fleet_mode", "How submitters are served: 0 unknown, 1 steady, 2 queue grows, 3 jobs fail.",
			func(now *Live, send send) { send(float64(now.Fleet.Mode.Number())) }),
		gauge("pilotfish_first_deadline_seconds",
			"Seconds until the first job fails because it reaches a timeout, if times rise on; absent unless the fleet's queue grows and that is within an hour.",
			func(now *Live, send send) {
				if after := now.Fleet.DeadlineSeconds; after != nil {
					send(*after)
				}
			}),
		gauge("pilotfish_fleet_full",
			"The cores that jobs needed in the last minute, over those of the fleet, as far as this sidecar can tell; "+
				"above 1 the fleet is too small. Absent while it is not known.",
			func(now *Live, send send) {
				if c := now.Capacity; c != nil {
					send(c.Full)
				}
			}),
		gauge("pilotfish_fleet_upstreams_needed",
			"How many upstreams would serve every job of the busiest minute of the last hour alike. Absent while it is not known.",
			func(now *Live, send send) {
				if c := now.Capacity; c != nil {
					send(float64(c.Needed))
				}
			}),
		gauge("pilotfish_fleet_upstreams_for_target",
			"How many upstreams would keep quality.target in the busiest minute of the last hour. Absent without a target.",
			func(now *Live, send send) {
				if c := now.Capacity; c != nil && c.ForTarget != nil {
					send(float64(*c.ForTarget))
				}
			}),
		gauge("pilotfish_queue_limited_jobs",
			"Jobs that wait in the sidecar because their project has as many in flight as it may have.",
			func(now *Live, send send) { send(float64(now.Limited)) }),

		gauge("pilotfish_bound_used", "How much is used of each bound of the sidecar. The bound's name has its unit.",
			func(now *Live, send send) {
				for _, b := range now.Bounds {
					send(float64(b.Used), b.Name)
				}
			}, "bound"),
		gauge("pilotfish_bound_limit", "How much may be used of each bound.",
			func(now *Live, send send) {
				for _, b := range now.Bounds {
					send(float64(b.Limit), b.Name)
				}
			}, "bound"),

		gauge("pilotfish_discovery_age_seconds",
			"Time since discovery last accepted a set of upstreams; absent before the first.",
			func(now *Live, send send) {
				if now.Discovery.Age >= 0 {
					send(now.Discovery.Age.Seconds())
				}
			}),
		counter("pilotfish_discovery_sets_total", "Changes of the set of upstreams, and sets refused as doubtful.",
			func(now *Live, send send) {
				send(float64(now.Discovery.Applied), "applied")
				send(float64(now.Discovery.Refused), "refused")
			}, "result"),
		counter("pilotfish_discovery_errors_total", "Requests to discovery's source without a reply that could be read.",
			func(now *Live, send send) { send(float64(now.Discovery.Failed)) }),
		gauge("pilotfish_certificate_expiry_timestamp_seconds",
			"When the certificate of upstream_tls.cert_file or of mesh.tls expires, the first of both, in seconds since 1970; absent without one.",
			func(now *Live, send send) {
				if !now.CertificateExpires.IsZero() {
					send(float64(now.CertificateExpires.Unix()))
				}
			}),
		counter("pilotfish_log_lines_lost_total", "Lines of the log that were lost because they could not be written in time.",
			func(now *Live, send send) { send(float64(now.LogLinesLost)) }),
	}
}
