// Package admin is the port for operators: metrics, health, the state of the
// upstreams, and which upstream a job would go to. A request changes nothing and
// submits nothing.
package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/selection"
)

// Config is what the admin port is made of. All but Pprof is required.
type Config struct {
	// Metrics serves /metrics.
	Metrics http.Handler
	// Pool knows the upstreams.
	Pool Pool
	// Quality knows how jobs were served.
	Quality Quality
	// Ready returns why the sidecar does not want jobs, or nil.
	Ready func() error
	// BrowserCheck wraps a handler in one that refuses requests of web pages.
	BrowserCheck func(http.Handler) http.Handler
	// Pprof adds /debug/pprof.
	Pprof bool
}

// Pool has the state of all upstreams, and ranks them for a job.
type Pool interface {
	States() []pool.State
	Explain(pool.Request) ([]pool.Ranked, error)
}

// Quality tells how jobs were served over the last minutes.
type Quality interface {
	Summary() quality.Summary
}

// New returns the admin port's handler.
func New(cfg Config) (http.Handler, error) {
	if cfg.Metrics == nil || cfg.Pool == nil || cfg.Quality == nil || cfg.Ready == nil || cfg.BrowserCheck == nil {
		return nil, errors.New("admin: Metrics, Pool, Quality, Ready and BrowserCheck are required")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := cfg.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.HandleFunc("GET /api/upstreams", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"upstreams": cfg.Pool.States()})
	})
	mux.HandleFunc("GET /api/pick", pick(cfg.Pool))
	mux.HandleFunc("GET /api/quality", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, cfg.Quality.Summary())
	})
	if cfg.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return cfg.BrowserCheck(mux), nil
}

// pick says which upstream a job would go to, and why, as the scheduler
// interface of the thesis does (7.3). Nothing is claimed or sent.
func pick(p Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			reply(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		word := q.Get("priority")
		if word == "" {
			word = selection.Low.String()
		}
		priority, ok := selection.ParsePriority(word)
		if !ok {
			reply(w, http.StatusBadRequest, map[string]string{"error": fmt.Sprintf("priority: %q is neither high nor low", word)})
			return
		}
		project := q.Get("project")
		ranking, err := p.Explain(pool.Request{Project: intake.Key(project), Priority: priority})
		if err != nil {
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
			return
		}
		reply(w, http.StatusOK, map[string]any{
			"project": project, "priority": word, "upstream": ranking[0].Address, "ranking": ranking,
		})
	}
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
