// Package admin is what an operator sees: metrics, health, the pool's state
// and how a job would be placed. It changes nothing and submits nothing.
package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
	"net/url"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Config says what the admin port shows.
type Config struct {
	// Metrics serves /metrics; required.
	Metrics http.Handler
	// Pool answers for the upstreams; required.
	Pool Pool
	// Ready tells why the sidecar does not want jobs, or nil; required.
	Ready func() error
	// Guard refuses requests that a web page caused; required.
	Guard func(http.Handler) http.Handler
	// Pprof adds /debug/pprof.
	Pprof bool
}

// Pool is what the admin port asks about the upstreams.
type Pool interface {
	States() []pool.State
	Explain(pool.Request) ([]pool.Ranked, error)
}

// New returns the admin port's handler.
func New(cfg Config) (http.Handler, error) {
	if cfg.Metrics == nil || cfg.Pool == nil || cfg.Ready == nil || cfg.Guard == nil {
		return nil, errors.New("admin: Metrics, Pool, Ready and Guard are required")
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
	if cfg.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return cfg.Guard(mux), nil
}

// pick answers where a job would go: the thesis's scheduler interface (7.3),
// with the reasons. Nothing is claimed or sent.
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
			reply(w, http.StatusBadRequest, map[string]string{"error": `priority: "` + word + `" is neither high nor low`})
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
	if err != nil { // a number that JSON lacks
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the reader may have gone
}
