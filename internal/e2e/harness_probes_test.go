//go:build clients

package e2e

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// pieces is how many an answer comes in that is streamed.
const pieces = 5

// probe is what upstreams know of the request with one Probe-Id.
type probe struct {
	mu   sync.Mutex
	seen *seen // nil until it arrives

	release   chan struct{} // lets the next piece of the answer go
	cancelled chan struct{} // closed when the sidecar gave it up
}

// seen is a request as it came to an upstream.
type seen struct {
	Bytes          int      `json:"bytes"`
	SHA256         string   `json:"sha256"`
	AcceptEncoding []string `json:"accept_encoding"`
}

// probes are upstreams whose responses a submitter controls and inspects by
// a control port beside the sidecar.
type probes struct {
	sidecar func() *sidecar
	mu      sync.Mutex
	byID    map[string]*probe
}

func (ps *probes) of(id string) *probe {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byID[id] == nil {
		ps.byID[id] = &probe{release: make(chan struct{}, pieces), cancelled: make(chan struct{})}
	}
	return ps.byID[id]
}

// arrive notes a request, once its body has been read.
func (ps *probes) arrive(r *http.Request) (*probe, []byte) {
	p := ps.of(r.Header.Get("Probe-Id"))
	body, _ := io.ReadAll(r.Body) // one that breaks off has another sum
	sum := sha256.Sum256(body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = &seen{len(body), hex.EncodeToString(sum[:]), r.Header["Accept-Encoding"]}
	return p, body
}

// echo answers with the body, compressed for those who ask for it.
func (ps *probes) echo(w http.ResponseWriter, r *http.Request) {
	_, body := ps.arrive(r)
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = z.Write(body)
	_ = z.Close()
}

// stream sends each piece of its answer when the one before has been read.
func (ps *probes) stream(w http.ResponseWriter, r *http.Request) {
	p, _ := ps.arrive(r)
	for n := range pieces {
		_, _ = fmt.Fprintf(w, "piece %d\n", n)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-p.release:
		case <-r.Context().Done():
			close(p.cancelled)
			return
		}
	}
}

// handler is the upstreams' part, before that of next.
func (ps *probes) handler(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /probe/echo", ps.echo)
	mux.HandleFunc("POST /probe/stream", ps.stream)
	mux.Handle("/", next)
	return mux
}

// control is the submitters' part. What it is asked to wait for is 204 when it
// has come, and 504 when it does not.
func (ps *probes) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/seen/{id}", func(w http.ResponseWriter, r *http.Request) {
		p := ps.of(r.PathValue("id"))
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.seen == nil {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(p.seen)
	})
	mux.HandleFunc("/release/{id}", func(w http.ResponseWriter, r *http.Request) {
		ps.of(r.PathValue("id")).release <- struct{}{}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/cancelled/{id}", func(w http.ResponseWriter, r *http.Request) {
		p := ps.of(r.PathValue("id"))
		wait(w, r, func() bool {
			select {
			case <-p.cancelled:
				return true
			default:
				return false
			}
		})
	})
	mux.HandleFunc("/uploading", func(w http.ResponseWriter, r *http.Request) {
		wait(w, r, func() bool { return ps.sidecar().metric("pilotfish_bound_used", "bound", "body_bytes") > 0 })
	})
	mux.HandleFunc("/idle", func(w http.ResponseWriter, r *http.Request) {
		wait(w, r, func() bool {
			return ps.sidecar().metric("pilotfish_upstream_in_flight") == 0 && ps.sidecar().metric("pilotfish_bound_used", "bound", "body_bytes") == 0
		})
	})
	return mux
}

func wait(w http.ResponseWriter, r *http.Request, done func() bool) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	look := time.NewTicker(tick)
	defer look.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-ctx.Done():
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
