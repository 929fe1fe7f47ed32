package prewarm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "prewarm" of a configuration file.
type Settings struct {
	// Projects is how many projects are fetched at most for one upstream that
	// leaves; 0 fetches nothing.
	Projects int `yaml:"projects"`
	// Path is where upstreams take requests to fetch a project's data.
	Path string `yaml:"path"`
}

// Default is what a file that says nothing means.
func Default() Settings { return Settings{Projects: 10, Path: "/v1/prefetch"} }

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	f.Within("projects", s.Projects, 0, maxPending)
	if !strings.HasPrefix(s.Path, "/") {
		f.Add("path", "%q must start with /", s.Path)
	}
}

// Config is what a Prewarmer is made of.
type Config struct {
	Settings
	// Busiest lists the projects, n at most, that had most jobs lately of those that an
	// upstream answered. Required.
	Busiest func(now time.Time, upstream string, n int) []quality.Busy
	// Successor names the upstream that gets a project's jobs once the upstream at
	// leaving is gone; "" when nothing is to be fetched. Required.
	Successor func(project uint64, leaving string) string
	// Observe is told how each prefetch ended, each time from a goroutine of its
	// own. Required.
	Observe func(Prefetch, error)
	// Transport carries the prefetches. Required.
	Transport http.RoundTripper
}

// check says what is missing or wrong.
func (c *Config) check() error {
	if c.Busiest == nil || c.Successor == nil || c.Observe == nil || c.Transport == nil {
		return errors.New("prewarm: Busiest, Successor, Observe and Transport are required")
	}
	var f settings.Faults
	c.Settings.Check(&f)
	if err := f.Err(); err != nil {
		return fmt.Errorf("prewarm: %w", err)
	}
	return nil
}
