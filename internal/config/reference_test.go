package config

import (
	"flag"
	"testing"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/test/manual"
)

// The reference of all keys is generated from the settings' types, their comments and their
// defaults:
//
//	go test ./internal/config -run TestReference -update

var update = flag.Bool("update", false, "write the reference of all keys")

// first are the keys that most files need, in order.
var first = []string{
	"listen", "admin", "admin_write",
	"discovery.static", "discovery.file", "discovery.dns", "discovery.consul", "discovery.kubernetes",
	"reports.metrics_path", "reports.interval", "job.project", "job.priority", "job.max_body",
	"selection.policy", "selection.shadow", "overload.policy", "retry.attempts", "retry.first_byte", "queue.jobs", "queue.wait", "projects.limit",
	"stream.idle", "quality.count_500", "shutdown.grace", "log.jobs",
}

func TestReferenceIsComplete(t *testing.T) {
	defaults := Default()
	text := manual.Keys(t, &defaults, first, cli.Encode)
	manual.Compare(t, "../../docs/configuration.md", text, "go test ./internal/config -run TestReference", *update)
}
