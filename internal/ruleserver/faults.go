package ruleserver

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// faultMode is a way to misbehave. Tests of sidecars switch it on.
type faultMode string

const (
	faultNone     faultMode = "none"
	faultFail     faultMode = "fail"      // jobs get 500 at once
	faultSilent   faultMode = "silent"    // no metrics, no listing, no load on responses
	faultLieCores faultMode = "lie-cores" // reports 4,000 cores
)

func faultModes() []faultMode {
	return []faultMode{faultNone, faultFail, faultSilent, faultLieCores}
}

// faults hold the mode.
type faults struct{ mode atomic.Value }

func newFaults() *faults {
	f := new(faults)
	f.set(faultNone)
	return f
}

func (f *faults) set(mode faultMode)     { f.mode.Store(mode) }
func (f *faults) is(mode faultMode) bool { return f.mode.Load() == mode }

// ServeHTTP sets the mode that is the body of a PUT.
func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 64))
	mode := faultMode(strings.TrimSpace(string(text)))
	if err != nil || !slices.Contains(faultModes(), mode) {
		http.Error(w, fmt.Sprintf("want one of %s", faultModes()), http.StatusBadRequest)
		return
	}
	f.set(mode)
	fmt.Fprintln(w, mode)
}

// withFaults is a handler that misbehaves in the present mode, and takes the mode at
// /v1/fault.
func (s *Server) withFaults(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("PUT /v1/fault", s.faults)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		report := r.URL.Path == metricsPath || r.URL.Path == listingPath
		switch {
		case s.faults.is(faultFail) && r.Method == http.MethodPost:
			http.Error(w, "this server fails on purpose", http.StatusInternalServerError)
		case s.faults.is(faultSilent) && report:
			http.NotFound(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
	return mux
}
