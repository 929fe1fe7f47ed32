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
	"sync"
	"sync/atomic"
)

// The paths of the stub upstreams.
const (
	jobPath  = "/v1/jobs" // immediate response
	deepPath = "/v1/deep" // immediate response of 2 KB
	waitPath = "/wait"    // no response
)

// listeners are HTTP servers.
type listeners struct {
	addresses []string
	closers   []func()
}

func (l *listeners) serve(h http.Handler) error {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // only bench talks to it
	go func() { _ = web.Serve(at) }()
	l.addresses, l.closers = append(l.addresses, at.Addr().String()), append(l.closers, func() { _ = web.Close() })
	return nil
}

func (l *listeners) close() {
	for _, end := range l.closers {
		end()
	}
	l.closers = nil
}

// stubs are upstreams that respond immediately.
type stubs struct {
	listeners
	waiting atomic.Int64 // waiting jobs at all of them
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
	waiting   *atomic.Int64 // waiting jobs at all upstreams
	completed atomic.Int64
	projects  [projects]atomic.Bool // projects of past jobs, which it lists as cached
}

var jobAnswer = strings.Repeat("id,title,price\n", 4) + "end\n"

var deepAnswer = strings.Repeat(jobAnswer, 32)

func (u *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil
	switch r.URL.Path {
	case jobPath, deepPath:
		if p, ok := projectOf(r.Body); ok {
			u.projects[p].Store(true)
		}
		u.completed.Add(1)
		text := jobAnswer
		if r.URL.Path == deepPath {
			text = deepAnswer
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text) // it fails if the submitter closed the connection
	case waitPath:
		_, _ = projectOf(r.Body)
		u.waiting.Add(1)
		defer u.waiting.Add(-1)
		<-r.Context().Done()
	case "/metrics": // an idle server of 64 cores
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "ruleserver_stalled_joblets 0\nruleserver_jobs_running 0\nruleserver_cores 64\nruleserver_cores_busy 0\n"+
			"ruleserver_jobs_completed_total %d\n", u.completed.Load())
	default: // the listing of its cache
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

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// projectOf reads a job's body and the project at its end.
func projectOf(body io.Reader) (project int, ok bool) {
	text := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(text)
	text.Reset()
	_, _ = text.ReadFrom(body) // a truncated body has no project
	all := text.Bytes()
	n, err := strconv.Atoi(string(bytes.TrimRight(all[bytes.LastIndexByte(all, ':')+1:], "}")))
	return n, err == nil && n >= 0 && n < projects
}
