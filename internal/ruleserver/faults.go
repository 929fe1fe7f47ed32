package ruleserver

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// faultMode is an injected fault. Tests of sidecars set it.
type faultMode string

const (
	faultNone     faultMode = "none"
	faultFail     faultMode = "fail"      // jobs get 500 immediately
	faultSilent   faultMode = "silent"    // no metrics, no listing, no load hints
	faultLieCores faultMode = "lie-cores" // reports 4,000 cores
)

var faultModes = []faultMode{faultNone, faultFail, faultSilent, faultLieCores}

// withFaults wraps a handler with the current fault. PUT /v1/fault with a mode as the body
// sets it.
func (s *Server) withFaults(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/fault", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(io.LimitReader(r.Body, 64))
		mode := faultMode(strings.TrimSpace(string(text)))
		if err != nil || !slices.Contains(faultModes, mode) {
			http.Error(w, fmt.Sprintf("want one of %s", faultModes), http.StatusBadRequest)
			return
		}
		s.fault.Store(mode)
		fmt.Fprintln(w, mode)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		report := r.URL.Path == metricsPath || r.URL.Path == listingPath || r.URL.Path == loadPath
		switch {
		case s.fault.Load() == faultFail && r.Method == http.MethodPost:
			http.Error(w, "this server fails on purpose", http.StatusInternalServerError)
		case s.fault.Load() == faultSilent && report:
			http.NotFound(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
	return mux
}
