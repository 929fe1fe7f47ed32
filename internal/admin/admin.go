// Package admin is the port for operators: a page, and what it shows as JSON; metrics,
// health, and which upstream a job would go to. No request submits anything, and none
// changes anything, except that where it is allowed an upstream can be drained by hand and
// the configuration be read again.
package admin

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/selection"
)

// Config is what the admin port serves. All is required.
type Config struct {
	// Metrics serves /metrics.
	Metrics http.Handler
	// Now, Points, About and Events are what the page shows.
	Now    func() Now
	Points func() []quality.Point
	About  func() About
	Events func() []logging.Event
	// Describe reads the body of a job; length is the declared one, or -1. A body over the limit is
	// intake.ErrTooLarge, one for which the memory budget has no room is intake.ErrNoRoom.
	Describe func(body io.Reader, length int64) (intake.Facts, error)
	// Explain ranks the upstreams for a job.
	Explain func(pool.Request) ([]pool.Ranked, error)
	// Drain keeps new jobs from an upstream, or ends that. known is false for an
	// address that is no upstream's.
	Drain func(address string, on bool) (known bool)
	// Reload reads the configuration again, and returns the keys whose changes wait for a
	// restart.
	Reload func() (waiting []string, err error)
	// Write allows Drain and Reload, and opens /debug/pprof.
	Write func() bool
	// BrowserCheck wraps a handler in one that refuses requests of other sites' pages.
	BrowserCheck func(http.Handler) http.Handler
	// TokenFile returns the path of the token that a request must show, but for /healthz and
	// /readyz: as a bearer token, or as the password of Basic authentication, which
	// browsers ask for. Without a path, everyone is let in.
	TokenFile func() string
}

// New returns the admin port's handler.
func New(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", page())
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", cfg.ready)
	mux.HandleFunc("GET /api/now", show(func() any { return cfg.Now() }))
	mux.HandleFunc("GET /api/upstreams", show(func() any { return map[string]any{"upstreams": cfg.Now().Upstreams} }))
	mux.HandleFunc("GET /api/history", show(func() any { return map[string]any{"points": cfg.Points()} }))
	mux.HandleFunc("GET /api/events", show(func() any { return map[string]any{"events": cfg.Events()} }))
	mux.HandleFunc("GET /api/about", show(func() any { return cfg.About() }))
	mux.HandleFunc("GET /api/pick", cfg.pick)
	mux.HandleFunc("POST /api/pick", cfg.pick)
	mux.HandleFunc("POST /api/upstreams/{address}/drain", cfg.drain)
	mux.HandleFunc("DELETE /api/upstreams/{address}/drain", cfg.drain)
	mux.HandleFunc("POST /-/reload", cfg.reload)
	for path, h := range map[string]http.HandlerFunc{
		"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET /debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			if !cfg.Write() {
				http.NotFound(w, r)
				return
			}
			bound(w, time.Time{}, time.Time{}) // a profile takes as long as it is told to
			h(w, r)
		})
	}
	return inTime(ownOrigin(cfg.BrowserCheck(authorized(cfg.TokenFile, mux))))
}

// How long a request may take to come, and its response to be read.
const readTime, writeTime = 30 * time.Second, time.Minute

// inTime ends the connections of those who take longer: a few would keep probes and scrapers out.
func inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		bound(w, now.Add(readTime), now.Add(writeTime))
		next.ServeHTTP(w, r)
	})
}

// bound sets deadlines of a connection, up to the end of its request; zero is none. A test's has none.
func bound(w http.ResponseWriter, read, write time.Time) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(read)
	_ = connection.SetWriteDeadline(write)
}

// show serves what now returns at the moment.
func show(now func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, now()) }
}

// maxReasons bounds how many ineligible upstreams readyz explains.
const maxReasons = 20

// ready says how many upstreams may be picked, or why the sidecar does not want jobs.
func (cfg *Config) ready(w http.ResponseWriter, _ *http.Request) {
	now := cfg.Now()
	if now.NotReady != "" {
		http.Error(w, now.NotReady, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, "ready: %d of %d upstreams are eligible\n", now.Eligible(), len(now.Upstreams))
	shown := 0
	for i := range now.Upstreams {
		if u := &now.Upstreams[i]; u.Why != "" && shown < maxReasons {
			shown++
			fmt.Fprintf(w, "%s: %s\n", u.Address, u.Status)
		}
	}
}

// drain begins a drain by hand, and DELETE ends it.
func (cfg *Config) drain(w http.ResponseWriter, r *http.Request) {
	address, on := r.PathValue("address"), r.Method == http.MethodPost
	switch {
	case !cfg.Write():
		refuse(w, http.StatusForbidden, "upstreams cannot be drained by hand: admin_write is false")
	case !cfg.Drain(address, on):
		refuse(w, http.StatusNotFound, fmt.Sprintf("no upstream has the address %q", address))
	default:
		reply(w, http.StatusOK, map[string]any{"address": address, "drained": on})
	}
}

// Reloaded is the reply to a reload.
type Reloaded struct {
	// Waiting are the keys whose changes wait for a restart.
	Waiting []string `json:"waiting_for_restart"`
}

// reload makes the sidecar read its configuration again.
func (cfg *Config) reload(w http.ResponseWriter, _ *http.Request) {
	if !cfg.Write() {
		refuse(w, http.StatusForbidden, "the configuration cannot be reloaded from here: admin_write is false; SIGHUP does it too")
		return
	}
	waiting, err := cfg.Reload()
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	reply(w, http.StatusOK, Reloaded{append([]string{}, waiting...)})
}

// ownOrigin lets this port's own page change things: a browser names the page's origin
// with every request that is no GET. The browser check behind it refuses every origin
// that is left, and hosts that are not this machine.
func ownOrigin(checked http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header["Origin"]; len(origin) == 1 && origin[0] == "http://"+r.Host {
			r = r.Clone(r.Context())
			r.Header.Del("Origin")
		}
		checked.ServeHTTP(w, r)
	})
}

// Pick is where a job would go.
type Pick struct {
	// Project and Priority are the job's.
	Project  string `json:"project"`
	Priority string `json:"priority"`
	// Upstream is where it would go.
	Upstream string `json:"upstream"`
	// Ranking is what each upstream that may take it would cost, the pick first.
	Ranking []pool.Ranked `json:"ranking"`
}

// pick says which upstream a job would go to, and why, as the scheduler
// interface of the thesis does (7.3). The job is in the query, or the body of the request is its
// body. Nothing is claimed or sent.
func (cfg *Config) pick(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	p := Pick{Project: q.Get("project"), Priority: cmp.Or(q.Get("priority"), selection.Low.String())}
	priority, ok := selection.ParsePriority(p.Priority)
	if !ok {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("priority: %q is neither high nor low", p.Priority))
		return
	}
	job := pool.Request{Project: intake.Key(p.Project), Priority: priority}
	if r.Method == http.MethodPost {
		facts, err := cfg.Describe(r.Body, r.ContentLength)
		switch {
		case err == nil:
		case errors.Is(err, intake.ErrTooLarge):
			refuse(w, http.StatusRequestEntityTooLarge, err.Error())
			return
		case errors.Is(err, intake.ErrNoRoom):
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, err.Error())
			return
		default:
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		p.Project, p.Priority = facts.Project, facts.Priority.String()
		job = pool.Request{Project: facts.Key, Data: facts.Data, Bytes: facts.Bytes, LengthKey: facts.LengthKey, Priority: facts.Priority}
	}
	p.Ranking, err = cfg.Explain(job)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	p.Upstream = p.Ranking[0].Address
	reply(w, http.StatusOK, p)
}

// refuse says why there is no other reply.
func refuse(w http.ResponseWriter, status int, why string) {
	reply(w, status, map[string]string{"error": why})
}

func reply(w http.ResponseWriter, status int, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // NaN and infinity have no JSON
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may be gone: nothing to do
}

//go:embed page
var content embed.FS

// policy lets the page load what this port serves, and nothing else. It runs no script
// and no style that is written into the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page serves the page and what it loads: / is index.html.
func page() http.Handler {
	within, _ := fs.Sub(content, "page") // the name is in order
	server := http.FileServerFS(within)
	tag := fmt.Sprintf(`"%x"`, time.Now().UnixNano()) // it changes with the process only
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && strings.HasSuffix(r.URL.Path, "/") { // a list of files
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // the browser asks whether it changed
		h.Set("ETag", tag)
		server.ServeHTTP(w, r)
	})
}
