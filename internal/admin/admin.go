// Package admin is the admin port: a page for operators and its data as JSON, metrics,
// health, and an explanation of where a job would go. Requests cannot submit jobs. With
// admin_write, requests can drain an upstream and reload the configuration. All other
// requests only read.
package admin

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// Config has the data sources and actions of the admin port. All fields are required.
type Config struct {
	// Metrics serves /metrics.
	Metrics http.Handler
	// Now, Points, About and Events return the page's data.
	Now    func() Now
	Points func() []quality.Point
	About  func() About
	Events func() []logging.Event
	// Describe reads the body of a job; length is the declared length, or -1. It returns intake.ErrTooLarge for a
	// body over the limit, and intake.ErrNoRoom if the memory budget is exhausted.
	Describe func(body io.Reader, length int64) (intake.Facts, error)
	// Explain ranks the upstreams for a job.
	Explain func(pool.Request) ([]pool.Ranked, error)
	// Drain drains an upstream, or ends the drain. known is false if no upstream has the
	// address.
	Drain func(address string, on bool) (known bool)
	// Reload reloads the configuration, and returns the keys whose changes need a
	// restart.
	Reload func() (waiting []string, err error)
	// Write reports whether Drain, Reload and /debug/pprof are permitted.
	Write func() bool
	// BrowserCheck wraps a handler in one that refuses requests from pages of other sites.
	BrowserCheck func(http.Handler) http.Handler
	// TokenFile returns the path of the token that requests need, except those for /healthz and
	// /readyz: as a bearer token, or as the password of Basic authentication, which
	// browsers support. Without a path, there is no authentication.
	TokenFile func() string
}

// New returns the admin port's handler.
func New(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", page())
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("this is the admin port, which has no POST %s; submit jobs to the address of listen", r.URL.Path))
	})
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", cfg.ready)
	mux.HandleFunc("GET /api/now", serveJSON(func() any { return cfg.Now() }))
	mux.HandleFunc("GET /api/upstreams", serveJSON(func() any { return map[string]any{"upstreams": cfg.Now().Upstreams} }))
	mux.HandleFunc("GET /api/history", serveJSON(func() any { return map[string]any{"points": cfg.Points()} }))
	mux.HandleFunc("GET /api/events", serveJSON(func() any { return map[string]any{"events": cfg.Events()} }))
	mux.HandleFunc("GET /api/about", serveJSON(func() any { return cfg.About() }))
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
			bound(w, time.Time{}, time.Time{}) // a profile takes as long as its parameter says
			h(w, r)
		})
	}
	return inTime(ownOrigin(cfg.BrowserCheck(authorized(cfg.TokenFile, mux))))
}

// Timeouts of receiving a request and of sending its response.
const readTime, writeTime = 30 * time.Second, time.Minute

// inTime applies readTime and writeTime to each request. Otherwise slow clients could occupy all connections of the port, and
// probes and scrapers would get none.
func inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		bound(w, now.Add(readTime), now.Add(writeTime))
		next.ServeHTTP(w, r)
	})
}

// bound sets the deadlines of a connection until the end of its request; zero is none. It does nothing for a recorder in
// tests.
func bound(w http.ResponseWriter, read, write time.Time) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(read)
	_ = connection.SetWriteDeadline(write)
}

// serveJSON serves the result of now as JSON.
func serveJSON(now func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, now()) }
}

// maxReasons bounds the number of ineligible upstreams in /readyz.
const maxReasons = 20

// ready reports how many upstreams are eligible, or why the sidecar is not ready.
func (cfg *Config) ready(w http.ResponseWriter, _ *http.Request) {
	now := cfg.Now()
	if now.NotReady != "" {
		http.Error(w, strings.Join(append([]string{now.NotReady}, now.Warnings...), "\n"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, "ready: %d of %d upstreams are eligible\n", now.Eligible(), len(now.Upstreams))
	for _, warning := range now.Warnings {
		fmt.Fprintln(w, warning)
	}
	shown := 0
	for i := range now.Upstreams {
		if u := &now.Upstreams[i]; u.Why != "" && shown < maxReasons {
			shown++
			fmt.Fprintf(w, "%s: %s\n", u.Address, u.Status)
		}
	}
}

// drain starts a drain by hand, or ends it for DELETE.
func (cfg *Config) drain(w http.ResponseWriter, r *http.Request) {
	address, on := r.PathValue("address"), r.Method == http.MethodPost
	switch {
	case !cfg.Write():
		refuse(w, http.StatusForbidden, "upstreams cannot be drained by hand: admin_write is false; set admin_write: true in the configuration")
	case !cfg.Drain(address, on):
		refuse(w, http.StatusNotFound, fmt.Sprintf("no upstream has the address %q", address))
	default:
		reply(w, http.StatusOK, map[string]any{"address": address, "drained": on})
	}
}

// Reloaded is the reply to a reload.
type Reloaded struct {
	// Waiting are the keys whose changes need a restart.
	Waiting []string `json:"waiting_for_restart"`
}

func (cfg *Config) reload(w http.ResponseWriter, _ *http.Request) {
	if !cfg.Write() {
		refuse(w, http.StatusForbidden, "the configuration cannot be reloaded from here: admin_write is false; set admin_write: true, or send SIGHUP")
		return
	}
	waiting, err := cfg.Reload()
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	reply(w, http.StatusOK, Reloaded{append([]string{}, waiting...)})
}

// ownOrigin removes the header Origin from requests of this port's own page, which browsers send with
// every request except GET. The browser check, which comes next, refuses requests with any
// other origin, and for hosts that are not this machine.
func ownOrigin(checked http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header["Origin"]; len(origin) == 1 && origin[0] == "http://"+r.Host {
			r = r.Clone(r.Context())
			r.Header.Del("Origin")
		}
		checked.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, status int, why string) {
	reply(w, status, map[string]string{"error": why})
}

func reply(w http.ResponseWriter, status int, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // JSON has no NaN and no infinity
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // it fails if the client has closed the connection
}

//go:embed page
var content embed.FS

// policy permits the page to load only from this port. Inline scripts and styles are
// forbidden.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page serves the files of the page: / is index.html.
func page() http.Handler {
	within, _ := fs.Sub(content, "page") // it fails only for invalid names
	server := http.FileServerFS(within)
	tag := fmt.Sprintf(`"%x"`, time.Now().UnixNano()) // the files change only with the process
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && strings.HasSuffix(r.URL.Path, "/") { // do not list directories
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // revalidate with the ETag
		h.Set("ETag", tag)
		server.ServeHTTP(w, r)
	})
}
