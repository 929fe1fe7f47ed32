//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// The paths of the stub upstreams.
const (
	jobPath    = "/v1/jobs" // answered at once
	streamPath = "/stream/" // so many bytes, in chunks
	waitPath   = "/wait"    // answered never
)

// listeners are upstreams by HTTP.
type listeners struct {
	addresses []string
	servers   []*http.Server
}

func (l *listeners) serve(h http.Handler) error {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // only bench talks to it
	go func() { _ = web.Serve(at) }()
	l.addresses, l.servers = append(l.addresses, at.Addr().String()), append(l.servers, web)
	return nil
}

func (l *listeners) close() {
	for _, web := range l.servers {
		_ = web.Close()
	}
}

// stubs are upstreams that answer at once.
type stubs struct {
	listeners
	waiting atomic.Int64 // jobs, at all of them
}

func startStubs(n int) (*stubs, error) {
	s := &stubs{}
	for range n {
		if err := s.serve(&stub{waiting: &s.waiting}); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// stub is one upstream.
type stub struct {
	waiting   *atomic.Int64 // jobs, at all upstreams
	completed atomic.Int64
	projects  [projects]atomic.Bool // those that it has seen, which are cached from then on
}

var jobAnswer = strings.Repeat("id,title,price\n", 4) + "end\n"

func (u *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := projectOf(r.Body); p >= 0 && p < projects {
		u.projects[p].Store(true)
	}
	w.Header()["Date"] = nil
	switch {
	case r.URL.Path == jobPath:
		u.completed.Add(1)
		w.Header().Set("Content-Length", "64")
		_, _ = io.WriteString(w, jobAnswer) // a submitter that left is no news
	case r.URL.Path == waitPath:
		u.waiting.Add(1)
		defer u.waiting.Add(-1)
		<-r.Context().Done()
	case strings.HasPrefix(r.URL.Path, streamPath):
		n, _ := strconv.ParseInt(r.URL.Path[len(streamPath):], 10, 64)
		for chunk := bytes.Repeat([]byte("x"), 32<<10); n > 0; n -= int64(len(chunk)) {
			if _, err := w.Write(chunk[:min(n, int64(len(chunk)))]); err != nil {
				return
			}
		}
	default:
		u.page(w, r.URL.Path)
	}
}

// projectOf reads a job's body, and the project that stands at its end; -1 is none.
func projectOf(body io.Reader) int {
	const most = 32 // bytes that the end of a body takes
	var tail []byte
	buffer := make([]byte, 16<<10)
	for {
		n, err := body.Read(buffer)
		tail = append(tail, buffer[max(0, n-most):n]...)
		tail = tail[max(0, len(tail)-most):]
		if err != nil {
			break
		}
	}
	digits := bytes.TrimRight(tail, "}")
	n, err := strconv.Atoi(string(digits[bytes.LastIndexByte(digits, ':')+1:]))
	if err != nil {
		return -1
	}
	return n
}

// page is what the stub reports: nothing to do, 64 cores, and the projects that it has.
func (u *stub) page(w http.ResponseWriter, path string) {
	switch path {
	case "/metrics":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "ruleserver_stalled_joblets 0\nruleserver_jobs_running 0\nruleserver_cores 64\nruleserver_cores_busy 0\n"+
			"ruleserver_jobs_completed_total %d\n", u.completed.Load())
	default:
		var ids []string
		for i := range u.projects {
			if u.projects[i].Load() {
				ids = append(ids, fmt.Sprintf(`{"id":%d}`, i))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"projects":[%s]}`, strings.Join(ids, ","))
	}
}
