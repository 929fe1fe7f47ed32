// Package admin is the port for operators: a page, and what it shows as JSON; metrics,
// health, the state of the upstreams, how they serve jobs, and which upstream a job
// would go to. No request submits anything, and none changes anything, except that an
// upstream can be drained by hand where that is allowed.
package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/selection"
)

// Config is what the admin port is made of. All but Reload, Write, Pprof and Token is required.
type Config struct {
	// Metrics serves /metrics.
	Metrics http.Handler
	// Pool knows the upstreams.
	Pool Pool
	// Quality knows how jobs were served.
	Quality Quality
	// Console knows what the page shows.
	Console Console
	// Ready returns why the sidecar does not want jobs, or nil.
	Ready func() error
	// BrowserCheck wraps a handler in one that refuses requests of other sites' pages.
	BrowserCheck func(http.Handler) http.Handler
	// Reload reads the configuration again, and returns the keys whose changes wait for a
	// restart. Nil has none to read.
	Reload func() (waiting []string, err error)
	// Write lets upstreams be drained by hand and the configuration be read again.
	Write func() bool
	// Pprof opens /debug/pprof.
	Pprof func() bool
	// Token returns what a request must show, if it is wanted, but for /healthz and
	// /readyz: as a bearer token, or as the password of Basic authentication, which
	// browsers ask for. Nil lets everyone in.
	Token func() (token string, wanted bool, err error)
}

// Pool has the state of all upstreams, ranks them for a job, and drains them.
type Pool interface {
	States() []pool.State
	Explain(pool.Request) ([]pool.Ranked, error)
	// Drain keeps new jobs from an upstream, or ends that. known is false for an
	// address that is no upstream's.
	Drain(address string, on bool) (known bool)
}

// Quality tells how jobs were served over the last minutes.
type Quality interface {
	Summary() quality.Summary
}

// Console tells what the page shows.
type Console interface {
	Now() Now
	History() quality.Series
	// Capacity fails while there is too little to tell by.
	Capacity() (capacity.Advice, error)
	About() (About, error)
}

// New returns the admin port's handler.
func New(cfg Config) (http.Handler, error) {
	if cfg.Metrics == nil || cfg.Pool == nil || cfg.Quality == nil || cfg.Console == nil || cfg.Ready == nil || cfg.BrowserCheck == nil {
		return nil, errors.New("admin: Metrics, Pool, Quality, Console, Ready and BrowserCheck are required")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", ready(cfg.Ready))
	mux.HandleFunc("GET /api/upstreams", show(func() any { return map[string]any{"upstreams": cfg.Pool.States()} }))
	mux.HandleFunc("GET /api/pick", pick(cfg.Pool))
	mux.HandleFunc("GET /api/quality", show(func() any { return cfg.Quality.Summary() }))
	mux.HandleFunc("GET /api/capacity", showCapacity(cfg.Console))
	mux.HandleFunc("GET /api/now", show(func() any { return cfg.Console.Now() }))
	mux.HandleFunc("GET /api/history", show(func() any { return cfg.Console.History() }))
	mux.HandleFunc("GET /api/about", about(cfg.Console))
	mux.HandleFunc("GET /api/events", events(cfg.Console.Now))
	drain(mux, cfg)
	mux.HandleFunc("POST /-/reload", reload(cfg))
	files, err := page()
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	mux.Handle("GET /", files)
	debug(mux, cfg.Pprof)
	return ownOrigin(cfg.BrowserCheck(authorized(cfg.Token, mux))), nil
}

// ready tells a probe whether the sidecar wants jobs.
func ready(refusal func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := refusal(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	}
}

// show serves what now returns at the moment.
func show(now func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, now()) }
}

func showCapacity(c Console) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		advice, err := c.Capacity()
		if err != nil {
			w.Header().Set("Retry-After", "10")
			refuse(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		reply(w, http.StatusOK, advice)
	}
}

func about(c Console) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		about, err := c.About()
		if err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		reply(w, http.StatusOK, about)
	}
}

// drain serves the one thing that can be changed here.
func drain(mux *http.ServeMux, cfg Config) {
	handle := func(on bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			address := r.PathValue("address")
			switch {
			case !allowed(cfg.Write):
				refuse(w, http.StatusForbidden, "upstreams cannot be drained by hand: admin_write is false")
			case !cfg.Pool.Drain(address, on):
				refuse(w, http.StatusNotFound, fmt.Sprintf("no upstream has the address %q", address))
			default:
				reply(w, http.StatusOK, map[string]any{"address": address, "drained": on})
			}
		}
	}
	mux.HandleFunc("POST /api/upstreams/{address}/drain", handle(true))
	mux.HandleFunc("DELETE /api/upstreams/{address}/drain", handle(false))
}

// debug serves the profiles while open allows it.
func debug(mux *http.ServeMux, open func() bool) {
	for path, h := range map[string]http.HandlerFunc{
		"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET /debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			if !allowed(open) {
				http.NotFound(w, r)
				return
			}
			h(w, r)
		})
	}
}

// reload serves what makes the sidecar read its configuration again.
func reload(cfg Config) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case !allowed(cfg.Write):
			refuse(w, http.StatusForbidden, "the configuration cannot be reloaded from here: admin_write is false; SIGHUP does it too")
			return
		case cfg.Reload == nil:
			refuse(w, http.StatusNotFound, "there is no configuration to reload")
			return
		}
		waiting, err := cfg.Reload()
		if err != nil {
			refuse(w, http.StatusUnprocessableEntity, err.Error())
			return
		}
		reply(w, http.StatusOK, map[string]any{"reloaded": true, "waiting_for_restart": append([]string{}, waiting...)})
	}
}

// allowed says whether something may be done; nil never lets it.
func allowed(f func() bool) bool { return f != nil && f() }

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

// pick says which upstream a job would go to, and why, as the scheduler
// interface of the thesis does (7.3). Nothing is claimed or sent.
func pick(p Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		word := q.Get("priority")
		if word == "" {
			word = selection.Low.String()
		}
		priority, ok := selection.ParsePriority(word)
		if !ok {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("priority: %q is neither high nor low", word))
			return
		}
		project := q.Get("project")
		ranking, err := p.Explain(pool.Request{Project: intake.Key(project), Priority: priority})
		if err != nil {
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		reply(w, http.StatusOK, map[string]any{
			"project": project, "priority": word, "upstream": ranking[0].Address, "ranking": ranking,
		})
	}
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
