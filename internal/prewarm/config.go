package prewarm

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Defaults of Config.
const (
	DefaultProjects = 10
	DefaultNotice   = 30 * time.Second
	DefaultGap      = time.Second
	DefaultTimeout  = 30 * time.Second
	DefaultPath     = "/v1/prefetch"
)

// Config says what is fetched ahead, and how.
type Config struct {
	// Heir names the upstream that a project falls to when the one at leaving
	// goes; "" when there is nothing to fetch. Required.
	Heir func(project uint64, leaving string) string
	// Projects bounds those that are fetched for one notice; default 10.
	Projects int
	// Notice is how long before its end an upstream counts as leaving, when it
	// tells its end and no notice; default 30 s.
	Notice time.Duration
	// Gap is the shortest time from one prefetch to the next at one upstream; default 1 s.
	Gap time.Duration
	// Timeout bounds one prefetch; default 30 s.
	Timeout time.Duration
	// Path is where upstreams take prefetches; default /v1/prefetch.
	Path string
	// Transport carries the prefetches; nil is a plain one.
	Transport http.RoundTripper
	// Observe is told how each prefetch ended, from goroutines of their own. Nil observes nothing.
	Observe func(Prefetch, error)
}

func (c Config) withDefaults() (Config, error) {
	c.Projects = cmp.Or(c.Projects, DefaultProjects)
	c.Notice = cmp.Or(c.Notice, DefaultNotice)
	c.Gap = cmp.Or(c.Gap, DefaultGap)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Path = cmp.Or(c.Path, DefaultPath)
	if c.Transport == nil {
		c.Transport = &http.Transport{DisableKeepAlives: true} // one request a second at most
	}
	if c.Observe == nil {
		c.Observe = func(Prefetch, error) {}
	}
	switch {
	case c.Heir == nil:
		return c, errors.New("prewarm: Heir is required")
	case c.Projects < 0:
		return c, fmt.Errorf("prewarm: %d projects: want a positive number", c.Projects)
	case c.Notice < 0 || c.Gap < 0 || c.Timeout < 0:
		return c, fmt.Errorf("prewarm: notice %v, gap %v, timeout %v: want positive durations", c.Notice, c.Gap, c.Timeout)
	case !strings.HasPrefix(c.Path, "/"):
		return c, fmt.Errorf("prewarm: path %q: want one that starts with /", c.Path)
	}
	return c, nil
}
