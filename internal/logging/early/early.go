// Package early makes libraries log JSON even before main starts. OpenTelemetry reads environment
// variables when its packages are initialized, and logs malformed ones. Packages without dependencies are
// initialized in the order of their import paths, so this one is initialized before libraries; it must not import
// anything else.
package early

import (
	"log/slog"
	"os"
)

func init() { //nolint:gochecknoinits // nothing later is early enough
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
}
