package report

import (
	"io"
	"net/http"
	"time"
)

var noon = time.Date(2025, 11, 20, 12, 0, 0, 0, time.UTC)

// goodPage is the metrics page of a busy upstream.
const goodPage = `# HELP ruleserver_stalled_joblets Joblets ready and waiting for a core.
# TYPE ruleserver_stalled_joblets gauge
ruleserver_stalled_joblets{priority="high"} 2
ruleserver_stalled_joblets{priority="low"} 7
# TYPE ruleserver_jobs_running gauge
ruleserver_jobs_running{priority="high"} 3
ruleserver_jobs_running{priority="low"} 12
# TYPE ruleserver_cores gauge
ruleserver_cores 16
# TYPE ruleserver_cores_busy gauge
ruleserver_cores_busy 15
# TYPE ruleserver_jobs_completed_total counter
ruleserver_jobs_completed_total{priority="high",outcome="ok"} 100
ruleserver_jobs_completed_total{priority="low",outcome="ok"} 1000
ruleserver_jobs_completed_total{priority="low",outcome="failed"} 10
# TYPE ruleserver_wait_seconds histogram
ruleserver_wait_seconds_bucket{priority="high",le="1"} 90
ruleserver_wait_seconds_bucket{priority="high",le="+Inf"} 100
ruleserver_wait_seconds_sum{priority="high"} 40
ruleserver_wait_seconds_count{priority="high"} 100
ruleserver_wait_seconds_bucket{priority="low",le="1"} 500
ruleserver_wait_seconds_bucket{priority="low",le="+Inf"} 1000
ruleserver_wait_seconds_sum{priority="low"} 2000
ruleserver_wait_seconds_count{priority="low"} 1000
# TYPE ruleserver_execution_seconds histogram
ruleserver_execution_seconds_bucket{priority="low",le="+Inf"} 1000
ruleserver_execution_seconds_sum{priority="low"} 9000
ruleserver_execution_seconds_count{priority="low"} 1000
# TYPE go_goroutines gauge
go_goroutines 42
`

// carrier is an http.RoundTripper in a func.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func respond(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}
}
