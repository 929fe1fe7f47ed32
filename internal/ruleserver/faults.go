package ruleserver

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// faultMode is a way to misbehave. Tests of sidecars switch it on.
type faultMode string

const (
	faultNone        faultMode = "none"
	faultHang        faultMode = "hang"         // takes requests, and responds to none until the mode changes
	faultSilent      faultMode = "silent"       // no metrics, no listing, no load on responses
	faultFail        faultMode = "fail"         // jobs get 500 at once
	faultEmpty       faultMode = "empty"        // jobs get 200 with an empty body at once
	faultFlap        faultMode = "flap"         // fails and works in turns of flapTurn
	faultSlow        faultMode = "slow"         // joblets take slowFactor times as long
	faultLieIdle     faultMode = "lie-idle"     // reports no load
	faultLieCores    faultMode = "lie-cores"    // reports 4,000 cores
	faultLieNaN      faultMode = "lie-nan"      // reports NaN for all figures of load
	faultLieNegative faultMode = "lie-negative" // reports figures below zero
	faultLieHuge     faultMode = "lie-huge"     // reports 1e308 for all figures
	faultLieResets   faultMode = "lie-resets"   // reports counters that begin at 0 with each report
	faultLieCached   faultMode = "lie-cached"   // lists every project as cached
)

const (
	flapTurn   = 5 * time.Second
	slowFactor = 10
)

func faultModes() []faultMode {
	return []faultMode{faultNone, faultHang, faultSilent, faultFail, faultEmpty, faultFlap, faultSlow,
		faultLieIdle, faultLieCores, faultLieNaN, faultLieNegative, faultLieHuge, faultLieResets, faultLieCached}
}

// faults hold the mode.
type faults struct {
	mu      sync.Mutex
	mode    faultMode
	since   time.Time
	changed chan struct{} // closed when the mode changes
}

func newFaults() *faults { return &faults{mode: faultNone, changed: make(chan struct{})} }

func (f *faults) set(mode faultMode, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.mode, f.since, f.changed = mode, now, make(chan struct{})
}

// get returns the mode, and a channel that is closed when it changes.
func (f *faults) get(now time.Time) (mode faultMode, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mode = f.mode
	if mode == faultFlap {
		mode = faultFail
		if now.Sub(f.since)/flapTurn%2 == 1 {
			mode = faultNone
		}
	}
	return mode, f.changed
}

func (f *faults) is(mode faultMode) bool {
	now, _ := f.get(time.Now())
	return now == mode
}

// slowness multiplies the duration of joblets.
func (f *faults) slowness() float64 {
	if f.is(faultSlow) {
		return slowFactor
	}
	return 1
}

// distort turns the true figures into those of a lie.
func (f *faults) distort(load figures) figures {
	all := func(change func(x float64) float64) {
		for _, x := range []*float64{&load.cores, &load.busy, &load.running[0], &load.running[1], &load.stalled[0], &load.stalled[1]} {
			*x = change(*x)
		}
	}
	mode, _ := f.get(time.Now())
	switch mode {
	case faultLieIdle:
		load.busy, load.running, load.stalled = 0, [2]float64{}, [2]float64{}
	case faultLieCores:
		load.cores = 4000
	case faultLieNaN:
		all(func(float64) float64 { return math.NaN() })
	case faultLieNegative:
		all(func(x float64) float64 { return -x - 1 })
	case faultLieResets:
		load.totals = executor.Totals{}
	case faultLieHuge:
		all(func(float64) float64 { return 1e308 })
	}
	return load
}

// ServeHTTP takes the mode of a PUT, and tells it.
func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		text, err := io.ReadAll(io.LimitReader(r.Body, 64))
		mode := faultMode(strings.TrimSpace(string(text)))
		if err != nil || !slices.Contains(faultModes(), mode) {
			http.Error(w, fmt.Sprintf("want one of %s", faultModes()), http.StatusBadRequest)
			return
		}
		f.set(mode, time.Now())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintln(w, f.mode)
}

// withFaults is a handler that misbehaves in the present mode, and takes the mode from
// this machine at /v1/fault.
func (s *Server) withFaults(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/fault", LocalOnly(s.faults))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		mode, changed := s.faults.get(time.Now())
		if mode == faultHang {
			s.hang(w, r, changed)
			mode, _ = s.faults.get(time.Now())
		}
		job := r.Method == http.MethodPost
		report := r.URL.Path == metricsPath || r.URL.Path == listingPath
		switch {
		case mode == faultFail && job:
			http.Error(w, "this server fails on purpose", http.StatusInternalServerError)
			return
		case mode == faultEmpty && job:
			return // net/http responds 200
		case mode == faultSilent && report:
			http.NotFound(w, r)
			return
		case mode == faultLieResets && r.URL.Path == metricsPath:
			defer s.metrics.reset()
		case mode == faultLieCached && r.URL.Path == listingPath:
			s.listEverything(w)
			return
		}
		next.ServeHTTP(w, r)
	})
	return mux
}

// hang blocks until the mode changes. It reads the body before, because net/http
// notices only then that the submitter has left.
func (s *Server) hang(w http.ResponseWriter, r *http.Request, changed <-chan struct{}) {
	body, err := s.readBody(w, r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	select {
	case <-changed:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}
