package report

import (
	"fmt"

	"github.com/prometheus/common/model"
)

// Names are the metrics of an upstream that make up a report. An empty name
// stands for its default. A metric is summed over its labels; the label
// "priority" tells high from low where the report does, and without it all
// is low.
type Names struct {
	// Stalled and Running are gauges that every upstream must have. Defaults
	// "ruleserver_stalled_joblets" and "ruleserver_jobs_running".
	Stalled, Running string
	// Cores and CoresBusy are gauges. Defaults "ruleserver_cores" and "ruleserver_cores_busy".
	Cores, CoresBusy string
	// Completed is a counter of jobs. Default "ruleserver_jobs_completed_total".
	Completed string
	// Wait, Execution and Response are histograms or summaries of seconds.
	// Where there is no Response, it is the sum of the other two. Defaults
	// "ruleserver_wait_seconds", "ruleserver_execution_seconds" and "ruleserver_response_seconds".
	Wait, Execution, Response string
}

// named is one of the Names, with its key in a configuration.
type named struct {
	key  string
	name *string
}

func (n *Names) all() []named {
	return []named{
		{"stalled", &n.Stalled}, {"running", &n.Running},
		{"cores", &n.Cores}, {"cores_busy", &n.CoresBusy},
		{"completed", &n.Completed},
		{"wait", &n.Wait}, {"execution", &n.Execution}, {"response", &n.Response},
	}
}

func (n *Names) fill() {
	or(&n.Stalled, "ruleserver_stalled_joblets")
	or(&n.Running, "ruleserver_jobs_running")
	or(&n.Cores, "ruleserver_cores")
	or(&n.CoresBusy, "ruleserver_cores_busy")
	or(&n.Completed, "ruleserver_jobs_completed_total")
	or(&n.Wait, "ruleserver_wait_seconds")
	or(&n.Execution, "ruleserver_execution_seconds")
	or(&n.Response, "ruleserver_response_seconds")
}

// check says what is wrong with filled Names.
func (n *Names) check() error {
	taken := map[string]string{}
	for _, m := range n.all() {
		if !model.UTF8Validation.IsValidMetricName(*m.name) {
			return fmt.Errorf("names.%s is %q, not the name of a metric", m.key, *m.name)
		}
		if other := taken[*m.name]; other != "" {
			return fmt.Errorf("names.%s is %q, which is names.%s already", m.key, *m.name, other)
		}
		taken[*m.name] = m.key
	}
	return nil
}
