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

// pieces is the number of pieces of a streamed response.
const pieces = 5

// probe is the upstreams' record of the request with one Probe-Id.
type probe struct {
	mu   sync.Mutex
	seen *seen // nil until it arrives

	release   chan struct{} // permits the next piece of the response
	cancelled chan struct{} // closed when the sidecar aborted the request
}

// seen is a request as the upstream received it.
type seen struct {
	Bytes          int      `json:"bytes"`
	SHA256         string   `json:"sha256"`
	AcceptEncoding []string `json:"accept_encoding"`
}

// probes are upstreams whose responses a submitter controls and inspects through a separate
// control port.
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

// arrive records a request after its body has been read.
func (ps *probes) arrive(r *http.Request) (*probe, []byte) {
	p := ps.of(r.Header.Get("Probe-Id"))
	body, _ := io.ReadAll(r.Body) // a truncated body has another hash
	sum := sha256.Sum256(body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = &seen{len(body), hex.EncodeToString(sum[:]), r.Header["Accept-Encoding"]}
	return p, body
}

// echo responds with the body, compressed if the request accepts it.
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

// stream sends each piece of its response after the one before has been read.
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

// handler serves the upstreams, before next.
func (ps *probes) handler(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /probe/echo", ps.echo)
	mux.HandleFunc("POST /probe/stream", ps.stream)
	mux.Handle("/", next)
	return mux
}

// control serves the submitters. A wait returns 204 when the event has occurred, and 504 if it
// does not.
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
