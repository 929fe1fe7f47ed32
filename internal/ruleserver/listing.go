package ruleserver

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// listing is the body of GET /v1/cache/projects.
type listing struct {
	Projects []listed `json:"projects"`
}

type listed struct {
	ID      string  `json:"id"`
	Version int64   `json:"version"`
	Bytes   int64   `json:"bytes"`
	Age     float64 `json:"age_seconds"`
}

// serveListing lists the projects whose data is cached, the oldest first. The ETag
// identifies the set of projects. After a 304, the client's list is still valid, except that the
// ages have increased since.
func (s *Server) serveListing(w http.ResponseWriter, r *http.Request) {
	projects, changes := s.executor.Projects()
	etag := fmt.Sprintf(`W/"%x-%x"`, s.born.UnixNano(), changes) // weak, because the ages differ under equal tags
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := listing{Projects: make([]listed, len(projects))}
	for i, p := range projects {
		body.Projects[i] = listed{p.Key.Project, p.Key.Version, p.Result.Bytes, time.Since(p.Added).Seconds()}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, body) // it fails if the client has closed the connection
}
