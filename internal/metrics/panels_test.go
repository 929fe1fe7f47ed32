package metrics

import "example.org/pilotfish/internal/quality"

// row is a row of the dashboard.
type row struct {
	title  string
	panels []panel
}

// panel is one panel. Its queries are pairs of a legend and an expression, in which {}
// and {label="x"} get the selector of the chosen sidecars, and [] the interval of rates.
type panel struct {
	kind               string // Grafana's type of panel
	title, about, unit string
	words              []string // the names of a timeline's values, from 0
	colors             []string // of the names, or of the values from each step on
	steps              []float64
	queries            []string
}

func stat(title, about, unit string, steps []float64, colors []string, query string) panel {
	return panel{kind: "stat", title: title, about: about, unit: unit, steps: steps, colors: colors, queries: []string{"", query}}
}

func lines(title, about, unit string, queries ...string) panel {
	return panel{kind: "timeseries", title: title, about: about, unit: unit, queries: queries}
}

func states[word ~string](title, about string, words []word, colors []string, queries ...string) panel {
	p := panel{kind: "state-timeline", title: title, about: about, unit: "short", colors: colors, queries: queries}
	for _, w := range words {
		p.words = append(p.words, string(w))
	}
	return p
}

// percentiles returns a panel of two quantiles of a histogram by a label.
func percentiles(title, about, histogram, label string) panel {
	const query = "(sum by (LABEL, le) (rate(NAME_bucket{}[])))"
	fill := func(q string) string {
		return replace("histogram_quantile"+query, "(sum", "("+q+", sum", "LABEL", label, "NAME", histogram)
	}
	return lines(title, about, "s", "{{"+label+"}} p50", fill("0.5"), "{{"+label+"}} p95", fill("0.95"))
}

// mean returns the query of a summary's mean at each upstream.
func mean(name string) string {
	return replace("sum by (upstream) (rate(NAME_sum{}[])) / sum by (upstream) (rate(NAME_count{}[]))", "NAME", name)
}

var (
	modeColors = []string{"text", "green", "orange", "red"}
	yesNo      = []string{"no", "yes"}
)

// rows are the dashboard. Each of pilotfish's metrics is on one of its panels.
var rows = []row{
	{"Now", []panel{
		stat("Sidecars", "Reachable now.", "short", nil, nil, `sum(up{})`),
		stat("Eligible upstreams", "The minimum over the sidecars.", "short", []float64{1, 2}, []string{"red", "orange", "green"},
			`min(pilotfish_fleet_upstreams_eligible{})`),
		stat("Jobs", "Per second.", "reqps", nil, nil, `sum(rate(pilotfish_jobs_total{}[]))`),
		stat("Failed", "Share of the jobs that got no complete response with a status below 500, without jobs that their submitters ended or that were refused.", "percentunit",
			[]float64{0.01, 0.05}, []string{"green", "orange", "red"},
			`sum(rate(pilotfish_jobs_total{outcome=~"failed|truncated|no_answer|deadline|broken"}[]))`+
				` / sum(rate(pilotfish_jobs_total{outcome!~"gone|shed|rejected|too_large"}[]))`),
		stat("Panic mode", "Sidecars that ignore their breakers.", "short", []float64{1}, []string{"green", "red"}, `sum(pilotfish_panic_mode{})`),
		stat("Configurations refused", "Sidecars whose last reload failed, so that an older configuration is in force.", "short", []float64{1}, []string{"green", "red"},
			`count(pilotfish_config_last_reload_success{} == 0) or vector(0)`),
	}},
	{"Jobs", []panel{
		lines("Jobs by outcome", "How jobs ended for their submitters.", "reqps",
			"{{outcome}}", `sum by (outcome) (rate(pilotfish_jobs_total{}[]))`),
		percentiles("Time to first byte", "From arrival to the first byte of the response.", "pilotfish_job_ttfb_seconds", "priority"),
		percentiles("Duration", "From arrival to the end, of jobs that were not refused.", "pilotfish_job_duration_seconds", "priority"),
		lines("Omitted retries", "Not made because of the retry budget, or because the body was not kept.", "reqps",
			"budget spent", `sum(rate(pilotfish_retries_refused_total{}[]))`,
			"body not kept", `sum(rate(pilotfish_replay_disabled_total{}[]))`),
		lines("Jobs by what was read", "full: priority and project are known. unread, partly: the job counts as low priority.", "reqps",
			"{{read}}", `sum by (read) (rate(pilotfish_jobs_read_total{}[]))`),
		lines("Forwarded bodies", "Bodies of jobs and of their responses.", "Bps",
			"jobs", `sum(rate(pilotfish_request_body_bytes_total{}[]))`,
			"responses", `sum(rate(pilotfish_response_body_bytes_total{}[]))`),
	}},
	{"Quality of service", []panel{
		states("Mode", "Steady: times to first byte do not rise. Queue grows: they rise from job to job. Jobs fail: errors, incomplete responses or none.",
			quality.Modes(quality.JobsFail), modeColors, "{{instance}}", `max by (instance) (pilotfish_fleet_mode{})`),
		states("Mode of each upstream", "The worst mode in any sidecar. Retries can hide failed attempts from submitters.", quality.Modes(quality.AttemptsFail), modeColors,
			"{{upstream}}", `max by (upstream) (pilotfish_mode{})`),
		lines("First deadline", "Time until the first job reaches its timeout at the current trend.", "s",
			"{{instance}}", `min by (instance) (pilotfish_first_deadline_seconds{})`),
		lines("Utilisation of the fleet", "Cores that the jobs need, divided by the fleet's cores, as estimated by each sidecar. Above 1 the fleet is too small.", "percentunit",
			"{{instance}}", `max by (instance) (pilotfish_fleet_full{})`),
		lines("Upstreams needed", "For the busiest minute of the last hour: to serve every job without a wait, and to keep quality.target.", "short",
			"{{instance}}", `max by (instance) (pilotfish_fleet_upstreams_needed{})`,
			"{{instance}} for the target", `max by (instance) (pilotfish_fleet_upstreams_for_target{})`),
		lines("Stretch", "Duration divided by duration without load, of complete jobs whose upstream reports waits: 95th percentile.", "short",
			"{{priority}}", `histogram_quantile(0.95, sum by (priority, le) (rate(pilotfish_job_stretch_bucket{}[])))`),
		percentiles("Wait until execution", "From a job's arrival to the start of its execution, if the upstream reports waits.", "pilotfish_job_wait_seconds", "priority"),
	}},
	{"Queue", []panel{
		lines("Waiting jobs", "Jobs that wait in the sidecars for an eligible upstream.", "short",
			"{{priority}}", `sum by (priority) (pilotfish_queue_jobs{})`,
			"of projects at their limit", `sum(pilotfish_queue_limited_jobs{})`),
		percentiles("Wait in the queue", "Time in the queue of jobs that had to wait.", "pilotfish_queue_wait_seconds", "priority"),
		lines("Shed", "Jobs refused for load.", "reqps",
			"{{priority}} {{reason}}", `sum by (priority, reason) (rate(pilotfish_shed_total{}[]))`),
	}},
	{"Placement", []panel{
		lines("Picks by cache", "Ended attempts, by the assumed state of the project's data at the upstream.", "reqps",
			"{{cache}}", `sum by (cache) (rate(pilotfish_picks_total{}[]))`),
		lines("Cache hits", "Hits and misses that the upstreams report, by what was assumed at the pick.", "ops",
			"{{found}}, believed {{believed}}", `sum by (found, believed) (rate(pilotfish_cache_finds_total{}[]))`),
		lines("Found their data", "Share of the jobs that need data: as placed, and as selection.shadow would have placed them.", "percentunit",
			"{{of}}", `sum by (of) (rate(pilotfish_data_finds_total{found="hit"}[])) / sum by (of) (rate(pilotfish_data_finds_total{}[]))`),
		lines("Prefetches", "Outcomes, and prefetches whose data a job used within a minute.", "reqps",
			"{{outcome}}", `sum by (outcome) (rate(pilotfish_prefetches_total{}[]))`,
			"used", `sum(rate(pilotfish_prefetches_used_total{}[]))`),
		lines("Heavy jobs", "Heavy jobs at upstreams for heavy jobs, or at others because none of those was eligible.", "reqps",
			"{{upstream_kind}}", `sum by (upstream_kind) (rate(pilotfish_heavy_picks_total{}[]))`),
		lines("Choices of the shadow", "Whether selection.shadow would have picked the same upstream.", "reqps",
			"{{choice}}", `sum by (choice) (rate(pilotfish_shadow_choices_total{}[]))`),
		lines("Cost of the shadow's choices", "Mean cost of a job by selection.policy: of its pick, and of selection.shadow's.", "s",
			"{{of}}", `sum by (of) (rate(pilotfish_shadow_cost_seconds_total{}[])) / on() group_left() sum(rate(pilotfish_shadow_choices_total{}[]))`),
	}},
	{"Upstreams", []panel{
		lines("Numbers of upstreams", "As each sidecar sees them. Overloaded: not admitted all jobs. Idle: a free core in the last report.", "short",
			"{{instance}} known", `max by (instance) (pilotfish_fleet_upstreams{})`,
			"{{instance}} eligible", `min by (instance) (pilotfish_fleet_upstreams_eligible{})`,
			"{{instance}} overloaded", `max by (instance) (pilotfish_fleet_upstreams_overloaded{})`,
			"{{instance}} idle", `min by (instance) (pilotfish_fleet_upstreams_idle{})`),
		states("Eligible", "The worst state in any sidecar.", []string{"not eligible", "eligible"}, []string{"red", "green"},
			"{{upstream}}", `min by (upstream) (pilotfish_upstream_eligible{})`),
		states("Breaker", "The worst state in any sidecar.", []string{"closed", "half open", "open"}, []string{"green", "yellow", "red"},
			"{{upstream}}", `max by (upstream) (pilotfish_breaker_state{})`),
		states("Down, suspect, slow, implausible or draining", "At the sidecar that sees it worst. Down: it refuses connections. A suspect takes jobs and seems to answer none. Implausible figures count as unknown.",
			yesNo, []string{"green", "orange"},
			"{{upstream}} down", `max by (upstream) (pilotfish_upstream_down{})`,
			"{{upstream}} suspect", `max by (upstream) (pilotfish_upstream_suspect{})`,
			"{{upstream}} slow", `max by (upstream) (pilotfish_upstream_slow{})`,
			"{{upstream}} implausible", `max by (upstream) (pilotfish_upstream_implausible{})`,
			"{{upstream}} draining", `max by (upstream) (pilotfish_upstream_draining{})`),
		lines("In flight", "Jobs that these sidecars sent and that have not ended.", "short",
			"{{upstream}}", `sum by (upstream) (pilotfish_upstream_in_flight{})`),
		lines("Attempts", "Ended attempts by outcome.", "ops",
			"{{upstream}} {{outcome}}", `sum by (upstream, outcome) (rate(pilotfish_upstream_attempts_total{}[]))`),
		percentiles("First byte of each", "From the start of an attempt to the first byte of its response.", "pilotfish_upstream_first_byte_seconds", "upstream"),
		lines("Stalled joblets and overload level", "Joblets that wait for a core, the maximum of the reports; and the admitted share of jobs: 1 is all, 0 is none.", "short",
			"{{upstream}} stalled", `max by (upstream) (pilotfish_upstream_stalled{})`,
			"{{upstream}} level", `min by (upstream) (pilotfish_overload_level{})`),
		lines("Backlog imbalance", "Maximum deviation of stalled joblets from the mean of all upstreams, divided by the mean: 0 is balanced.", "short",
			"{{instance}}", `max by (instance) (pilotfish_fleet_backlog_imbalance{})`),
		lines("Running and cores", "The maximum of the reports.", "short",
			"{{upstream}} running", `max by (upstream) (pilotfish_upstream_running{})`,
			"{{upstream}} cores", `max by (upstream) (pilotfish_upstream_cores{})`),
		lines("Wait and fetch", "Means, if the upstream reports them: the wait of all jobs, and the fetch time of those that caused a fetch.", "s",
			"{{upstream}} wait", mean("pilotfish_upstream_wait_seconds"), "{{upstream}} fetch", mean("pilotfish_upstream_fetch_seconds")),
		lines("Age of the report", "The maximum over the sidecars.", "s",
			"{{upstream}}", `max by (upstream) (pilotfish_upstream_report_age_seconds{})`),
		lines("Failed reports", "Reports that could not be polled or parsed.", "cps",
			"{{upstream}}", `sum by (upstream) (rate(pilotfish_report_failures_total{}[]))`),
		lines("Events of KV caches", "Events of upstreams' caches of prompts. Nothing was learned from the ignored ones.", "cps",
			"{{upstream}} {{result}}", `sum by (upstream, result) (rate(pilotfish_cache_events_total{}[]))`),
	}},
	{"Sidecars", []panel{
		lines("Age of the set of upstreams", "Time since discovery last accepted a set. The age of a static list only increases.", "s",
			"{{instance}}", `max by (instance) (pilotfish_discovery_age_seconds{})`),
		lines("Sets and errors", "Applied sets, sets refused as implausible, and failed queries.", "short",
			"{{result}}", `sum by (result) (increase(pilotfish_discovery_sets_total{}[]))`,
			"errors", `sum(increase(pilotfish_discovery_errors_total{}[]))`),
		lines("Probes", "Requests for the load of upstreams before jobs are sent; each job has up to three.", "cps",
			"{{outcome}}", `sum by (outcome) (rate(pilotfish_probes_total{}[]))`),
		lines("Withdrawals", "Requests to withdraw waiting jobs for idle upstreams; a job that has started is refused.", "cps",
			"{{outcome}}", `sum by (outcome) (rate(pilotfish_withdrawals_total{}[]))`),
		lines("Age of the configuration", "Time since the configuration in force was read.", "s",
			"{{instance}}", `time() - max by (instance) (pilotfish_config_last_reload_success_timestamp_seconds{})`),
		lines("Bounds", "Use of each bounded resource.", "percentunit",
			"{{instance}} {{bound}}", `max by (instance, bound) (pilotfish_bound_used{} / pilotfish_bound_limit{})`),
		lines("Restarts and lost log lines", "Restarts of the process, and lines that could not be written in time.", "short",
			"planned start of {{instance}}", `max by (instance) (pilotfish_planned_start{})`,
			"restarts of {{instance}}", `sum by (instance) (changes(process_start_time_seconds{}[]))`,
			"lines lost by {{instance}}", `sum by (instance) (increase(pilotfish_log_lines_lost_total{}[]))`),
		lines("Certificate", "Time until the certificate for upstreams or gateways expires.", "s",
			"{{instance}}", `min by (instance) (pilotfish_certificate_expiry_timestamp_seconds{} - time())`),
		lines("Memory", "Resident.", "bytes", "{{instance}}", `max by (instance) (process_resident_memory_bytes{})`),
		lines("CPU", "Cores in use.", "short", "{{instance}}", `sum by (instance) (rate(process_cpu_seconds_total{}[]))`),
		lines("Goroutines and descriptors", "Flat under steady load.", "short",
			"{{instance}} goroutines", `max by (instance) (go_goroutines{})`,
			"{{instance}} descriptors", `max by (instance) (process_open_fds{})`),
		{kind: "table", title: "Versions", about: "Sidecars by build.", unit: "short",
			queries: []string{"", `count by (version, commit, goversion) (pilotfish_build_info{})`}},
	}},
}
