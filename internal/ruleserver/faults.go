package ruleserver

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// faultMode is a way to misbehave. Tests of sidecars switch it on.
type faultMode string

const (
	faultNone     faultMode = "none"
	faultFail     faultMode = "fail"      // jobs get 500 at once
	faultSilent   faultMode = "silent"    // no metrics, no listing, no load on responses
	faultLieCores faultMode = "lie-cores" // reports 4,000 cores
)

var faultModes = []faultMode{faultNone, faultFail, faultSilent, faultLieCores}

// withFaults is a handler that misbehaves in the present mode, and takes the mode at
// /v1/fault: the body of a PUT.
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
