package ruleserver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// listingAge is how long a listing is kept and served again, so that many clients
// cost as much as one. The ages in it are wrong by at most that.
const listingAge = time.Second

// listing serves GET /v1/cache/projects. The ETag stands for the set of cached
// results. After a 304, the client still has the right projects; their ages have
// grown by the time since it got them.
type listing struct {
	executor *executor.Executor
	born     time.Time // part of the ETag, so that it differs after a restart

	mu      sync.Mutex
	made    time.Time
	etag    string
	plain   []byte
	gzipped []byte // nil until a client asks for it
}

func newListing(e *executor.Executor, now time.Time) *listing {
	return &listing{executor: e, born: now}
}

func (l *listing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Vary", "Accept-Encoding")
	if etag := l.etagOf(l.executor.Changes()); r.Header.Get("If-None-Match") == etag {
		header.Set("ETag", etag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	zip := quality(r.Header.Get("Accept-Encoding"), "gzip") > 0
	body, etag := l.body(time.Now(), zip)
	header.Set("ETag", etag)
	header.Set("Content-Type", "application/json")
	if zip {
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // if the client has left, it asks again
}

// etagOf is weak (W/), because the ages differ under equal tags.
func (l *listing) etagOf(changes uint64) string {
	return fmt.Sprintf(`W/"%x-%x"`, l.born.UnixNano(), changes)
}

func (l *listing) body(now time.Time, zip bool) (body []byte, etag string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plain == nil || now.Sub(l.made) >= listingAge || l.etag != l.etagOf(l.executor.Changes()) {
		projects, changes := l.executor.Projects()
		l.made, l.etag = now, l.etagOf(changes)
		l.plain, l.gzipped = appendListing(make([]byte, 0, 32+96*len(projects)), now, projects), nil
	}
	if !zip {
		return l.plain, l.etag
	}
	if l.gzipped == nil {
		l.gzipped = compress(l.plain)
	}
	return l.gzipped, l.etag
}

// listEverything lists the projects of all feeds, cached or not, for a fault mode.
func (s *Server) listEverything(w http.ResponseWriter) {
	now := time.Now()
	var all []executor.CachedProject
	for _, project := range s.feeds.projects() {
		all = append(all, executor.CachedProject{Project: project, Version: 1, Bytes: 1, Added: now})
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(appendListing(nil, now, all))
}

func appendListing(text []byte, now time.Time, projects []executor.CachedProject) []byte {
	text = append(text, `{"projects":[`...)
	for i, p := range projects {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, `{"id":`...)
		text = appendProject(text, p.Project)
		text = append(text, `,"version":`...)
		text = strconv.AppendInt(text, p.Version, 10)
		text = append(text, `,"bytes":`...)
		text = strconv.AppendInt(text, p.Bytes, 10)
		text = append(text, `,"age_seconds":`...)
		text = strconv.AppendFloat(text, max(now.Sub(p.Added), 0).Seconds(), 'f', 3, 64)
		text = append(text, '}')
	}
	return append(text, "]}\n"...)
}

// appendProject writes the name as a number if it is an integer that every JSON
// reader keeps exactly, otherwise as a string.
func appendProject(text []byte, project string) []byte {
	digits := strings.TrimPrefix(project, "-")
	if _, err := strconv.ParseInt(project, 10, 54); err == nil && (digits[0] != '0' || project == "0") {
		return append(text, project...)
	}
	text, err := jsontext.AppendQuote(text, project)
	if err != nil {
		panic("BUG: ruleserver: a project's name is not UTF-8: " + err.Error()) // rules.ValidProject
	}
	return text
}

func compress(text []byte) []byte {
	var buffer bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buffer, gzip.BestSpeed)
	if err != nil {
		panic("BUG: ruleserver: gzip: " + err.Error())
	}
	if _, err := writer.Write(text); err != nil {
		panic("BUG: ruleserver: gzip: " + err.Error())
	}
	if err := writer.Close(); err != nil {
		panic("BUG: ruleserver: gzip: " + err.Error())
	}
	return buffer.Bytes()
}
