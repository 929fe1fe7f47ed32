package ruleserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// faultMode is a way to misbehave. Tests of sidecars switch it on.
type faultMode string

const (
	faultNone     faultMode = "none"
	faultHang     faultMode = "hang"      // takes requests, and responds to none until the mode changes
	faultFail     faultMode = "fail"      // jobs get 500 at once
	faultSilent   faultMode = "silent"    // no metrics, no listing, no load on responses
	faultLieCores faultMode = "lie-cores" // reports 4,000 cores
)

func faultModes() []faultMode {
	return []faultMode{faultNone, faultHang, faultFail, faultSilent, faultLieCores}
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
		if s.faults.is(faultHang) {
			s.hang(w, r)
		}
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

// hang blocks until the mode changes. It reads the body before, because net/http
// notices only then that the submitter has left.
func (s *Server) hang(w http.ResponseWriter, r *http.Request) {
	body, err := s.readBody(w, r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for s.faults.is(faultHang) {
		select {
		case <-look.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}
