package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/settings"
)

// fixed is a bound that no key changes: a constant of a file, or the default that the
// file gives to a field by number("Field", ...).
type fixed struct{ file, name, unit string }

// tableOfBounds is where the code has the bounds of the table in docs/operate.md: the
// figures of each row, in their order. A text is a key of the configuration.
var tableOfBounds = map[string][]any{
	"connections at the job port; more wait to be accepted":              {"submitters.connections"},
	"connections at the admin port; the one idle for longest makes room": {adminConns},
	"jobs at one time on an HTTP/2 connection":                           {fixed{"proxy/server.go", "Streams", ""}},
	"what comes of bodies by HTTP/2 before a job reads it":               {fixed{"proxy/server.go", "streamAhead", "bytes"}, fixed{"proxy/server.go", "connAhead", "bytes"}},
	"connections of Envoy at the mesh port, and streams on each":         {fixed{"mesh/server.go", "maxConns", ""}, fixed{"mesh/server.go", "maxStreams", ""}},
	"head of a request; the time for it":                                 {"submitters.max_head", fixed{"proxy/server.go", "HeaderTimeout", "s"}},
	"heads that have begun to arrive, together ([memory](#memory))":      {"submitters.heads"},
	"connection of a submitter without a job":                            {fixed{"proxy/server.go", "IdleTimeout", "s"}},
	"body of a job": {"job.max_body"},
	"silence while a body is sent, in sum beyond 256 bytes/s":             {fixed{"proxy/config.go", "BodyIdle", "s"}},
	"time that a submitter takes no byte of a response":                   {fixed{"proxy/config.go", "WriteIdle", "s"}},
	"bodies kept for retries, together":                                   {"job.budget"},
	"jobs that wait; their bodies; their time":                            {"queue.jobs", "queue.bytes", "queue.wait"},
	"jobs of one project in flight":                                       {"projects.limit"},
	"attempts of a job; retries of all":                                   {"retry.attempts", "retry.budget"},
	"connecting to an upstream; dials at one time to one":                 {"retry.connect_timeout", fixed{"proxy/upstreamclient/pool.go", "maxDials", ""}},
	"idle connections to one upstream; for how long":                      {fixed{"proxy/config.go", "IdleConns", ""}, fixed{"proxy/config.go", "IdleConnTimeout", "s"}},
	"time to the first byte of a response":                                {"retry.first_byte"},
	"head of a response; interim responses":                               {fixed{"proxy/config.go", "MaxAnswerHeader", "bytes"}, fixed{"proxy/upstreamclient/response.go", "maxInterims", ""}},
	"silence within a response":                                           {"stream.idle"},
	"response of a refusal that is kept while the job is tried elsewhere": {fixed{"proxy/refusal.go", "maxRefusal", "bytes"}},
	"a report: its time, its page, its listing":                           {"reports.timeout", fixed{"report/poller.go", "maxMetricsBytes", "bytes"}, fixed{"report/poller.go", "maxMetricsLines", ""}, fixed{"report/listing.go", "maxCacheBytes", "bytes"}, fixed{"report/listing.go", "maxProjects", ""}},
	"load hint; ORCA report":                                              {fixed{"report/hint.go", "maxHintBytes", ""}, fixed{"report/orca.go", "maxORCABytes", "bytes"}},
	"response of a Prometheus server":                                     {fixed{"report/prometheus.go", "maxVectorBytes", "bytes"}},
	"upstreams":                                                           {fixed{"discovery/discovery.go", "maxUpstreams", ""}},
	"reply of Consul; file of `discovery.file`":                           {fixed{"discovery/consulclient.go", "maxConsulReply", "bytes"}, fixed{"discovery/file.go", "maxFile", "bytes"}},
	"prefetches that wait":                                                {fixed{"prewarm/prefetch.go", "maxPending", ""}},
	"scrapes at one time; their time":                                     {fixed{"metrics/metrics.go", "maxScrapes", ""}, fixed{"metrics/metrics.go", "scrapeTimeout", "s"}},
	"pages of the admin port that are open":                               {fixed{"admin/now.go", "maxViewers", ""}},
	"lines of a capture that wait to be written":                          {fixed{"capture/capture.go", "held", ""}},
	"end of the process":                                                  {"shutdown.grace"},
}

// The table of bounds in docs/operate.md says what the code does, and names keys and
// metrics that there are.
func TestTableOfBounds(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| what | bound | key | metric |\n|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	metrics := sourceOf(t, "../../internal/metrics/*.go")
	figures := regexp.MustCompile(`\d[\d,]*(?: (?:h|min|s|KiB|MiB|GiB)\b)?|none|a fifth`)
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := map[string]bool{}
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row[1:len(row)-1], "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		what, told := cells[0], figures.FindAllString(cells[1], -1)
		rows[what] = true
		if held, ok := tableOfBounds[what]; assert.True(t, ok, "no test holds the row %q", what) {
			var want []string
			for _, v := range held {
				want = append(want, inWords(t, v))
			}
			assert.Equal(t, want, told, what)
		}
		for _, key := range quoted.FindAllStringSubmatch(cells[2], -1) {
			keyed(t, key[1])
		}
		last := ""
		for _, m := range quoted.FindAllStringSubmatch(cells[3], -1) {
			name := m[1]
			if strings.HasPrefix(name, "_") {
				name = last + name
			}
			if last = name; strings.HasPrefix(name, "pilotfish_") {
				assert.Contains(t, metrics, `"`+name+`"`, what)
			}
		}
	}
	for what := range tableOfBounds {
		assert.True(t, rows[what], "the table has no row %q", what)
	}
}

// inWords is a bound as the table writes it.
func inWords(t *testing.T, bound any) string {
	t.Helper()
	switch v := bound.(type) {
	case string:
		return inWords(t, keyed(t, v))
	case fixed:
		n := v.value(t)
		switch v.unit {
		case "s":
			return inWords(t, time.Duration(n))
		case "bytes":
			return inWords(t, settings.Size(n))
		}
		return inWords(t, int(n))
	case time.Duration:
		for _, unit := range []struct {
			of   time.Duration
			name string
		}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
			if v%unit.of == 0 {
				return fmt.Sprint(int(v/unit.of), " ", unit.name)
			}
		}
	case settings.Size:
		for i, unit := range []string{"GiB", "MiB", "KiB"} {
			if of := settings.Size(1) << (30 - 10*i); v%of == 0 {
				return fmt.Sprint(int(v/of), " ", unit)
			}
		}
	case float64:
		if v == 0.2 {
			return "a fifth"
		}
	case int:
		digits := strconv.Itoa(v)
		if v == 0 {
			return "none"
		}
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
		return digits
	}
	require.FailNow(t, "no words for this bound", "%v", bound)
	return ""
}

// keyed is the default of a key of the configuration.
func keyed(t *testing.T, key string) any {
	t.Helper()
	v := reflect.ValueOf(config.Default())
next:
	for name := range strings.SplitSeq(key, ".") {
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("yaml") == name {
				v = v.Field(i)
				continue next
			}
		}
		require.FailNow(t, "no such key", key)
	}
	return v.Interface()
}

// value is the bound as the source says it: durations in nanoseconds.
func (f fixed) value(t *testing.T) (n int64) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../../internal", f.file), nil, 0)
	require.NoError(t, err)
	found := false
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.ValueSpec:
			for i, name := range x.Names {
				if name.Name == f.name && i < len(x.Values) {
					n, found = evaluate(t, x.Values[i]), true
				}
			}
		case *ast.CallExpr:
			if fun, ok := x.Fun.(*ast.Ident); ok && fun.Name == "number" && len(x.Args) == 3 {
				if name, ok := x.Args[0].(*ast.BasicLit); ok && name.Value == strconv.Quote(f.name) {
					n, found = evaluate(t, x.Args[2]), true
				}
			}
		}
		return true
	})
	require.True(t, found, "%s has no %s", f.file, f.name)
	return n
}

// evaluate computes an expression of numbers and units of time.
func evaluate(t *testing.T, e ast.Expr) int64 {
	t.Helper()
	switch x := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(x.Value, 0, 64)
		require.NoError(t, err)
		return n
	case *ast.SelectorExpr:
		return int64(map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}[x.Sel.Name])
	case *ast.BinaryExpr:
		a, b := evaluate(t, x.X), evaluate(t, x.Y)
		switch x.Op {
		case token.MUL:
			return a * b
		case token.SHL:
			return a << b
		}
	}
	require.FailNow(t, "an expression that this test cannot compute", "%T", e)
	return 0
}

// sourceOf is the text of files.
func sourceOf(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
