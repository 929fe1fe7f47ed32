package fakeupstream

import (
	"cmp"
	"io/fs"
	"net/http"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/settings"
)

// Options say what an upstream is like. The zero value is a server with 4 cores,
// a cache of 1 GiB that is empty, and a feed for every project.
type Options struct {
	Cores      int   // joblets that run at the same time; 4
	CacheBytes int64 // memory for results; 1 GiB; negative keeps none

	// Feeds holds a file PROJECT.csv for each project, its columns named in the
	// first line. Without it every project has ExampleFeed.
	Feeds fs.FS

	// Cached are the projects whose data is cached from the start, the first one
	// the oldest.
	Cached []string

	// Cost is how long joblets last, in the form of the ruleserver's flag --cost,
	// such as "fetch=2s,shared=400ms,operators=800ms,output=100ms". Without it
	// they last as long as their work.
	Cost string

	// Handler answers jobs, and whatever else is sent, instead of the rules. It
	// meets the same faults. It is called as soon as a job's headers are there, so
	// bodies are its own to read, and are not recorded. Reports and health checks
	// are those of a server that has no jobs.
	Handler http.Handler

	// Metrics answers requests for /metrics instead of the rules. It meets the same
	// faults.
	Metrics http.Handler

	// Listen is the address to listen on. Without it, it is a free port of 127.0.0.1.
	Listen string
}

// settings are those of the reference server.
func (o Options) settings() (ruleserver.Settings, error) {
	s := ruleserver.Defaults()
	s.Cores = cmp.Or(o.Cores, s.Cores)
	s.CacheBytes = max(cmp.Or(settings.Size(o.CacheBytes), s.CacheBytes), 0)
	var err error
	s.Cost, err = ruleserver.ParseCost(o.Cost)
	return s, err
}

// TB is what New needs of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// ExampleJob is a job of high priority for project 12345.
func ExampleJob() string { return example.Job() }

// ExampleFeed is the data of that project, as CSV.
func ExampleFeed() string { return example.Feed() }
