// Package early makes what libraries log before main starts JSON, as the rest of the log is. OpenTelemetry reads variables of the
// environment when its packages are initialized, and logs the malformed ones. Packages without dependencies are
// initialized in the order of their import paths, so this one precedes those of libraries; it must import nothing else.
package early

import (
	"log/slog"
	"os"
)

func init() { //nolint:gochecknoinits // nothing later is early enough
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
}
