package report

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
)

// Limits for one cache listing.
const (
	maxCacheBytes = 64 << 20
	maxProjects   = 1_000_000
)

// listing is the last cache listing of an upstream.
type listing struct {
	cached projectSet // nil means unknown
	etag   string     // of the response with cached; "" if it had none
}

// socketHost is the suffix of the host in the URL of a Unix socket. Its prefix is the address in
// hexadecimal, because http.Transport pools connections by host.
const socketHost = ".unix"

// upstreamURL returns the URL of a path, which may have a query, at an upstream.
func upstreamURL(address, path string) string {
	if _, local := settings.UnixPath(address); local {
		address = hex.EncodeToString([]byte(address)) + socketHost
	}
	return (&url.URL{Scheme: "http", Host: address}).String() + path
}

// listed is a project in a listing. Other members are ignored.
type listed struct {
	ID    jsontext.Value `json:"id"`
	Bytes jsontext.Value `json:"bytes"` // size of its data; an invalid size is ignored
}

// readListing reads {"projects": [{"id": …, "bytes": …}, …]} to its end, with at most most projects.
// expected is an estimate of their number, which saves growing the set.
func readListing(body io.Reader, most, expected int) (projectSet, error) {
	projects := make(projectSet, min(expected, most))
	var document struct {
		Projects elements[listed] `json:"projects"`
	}
	n := 0
	var scratch []byte
	document.Projects.each = func(p *listed) (err error) {
		if n++; n > most {
			return fmt.Errorf("more than %d projects", most)
		}
		if scratch, err = projectID(scratch[:0], p.ID); err != nil {
			return err
		}
		if key := intake.Key(string(scratch)); key != 0 && len(scratch) <= intake.MaxProject {
			size, _ := strconv.ParseFloat(string(p.Bytes), 32)
			projects[key] = float32(max(size, 0))
		}
		p.ID, p.Bytes = p.ID[:0], p.Bytes[:0]
		return nil
	}
	err := readDocument(body, &document)
	if err == nil && !document.Projects.found {
		err = errors.New("projects is missing")
	}
	return projects, err
}

// projectID appends a project identifier, by the same rules as for jobs, so that both have
// the same hash. Invalid UTF-8 becomes U+FFFD.
func projectID(to []byte, id jsontext.Value) ([]byte, error) {
	switch kind := id.Kind(); {
	case kind == '"':
		to, _ = jsontext.AppendUnquote(to, id)
		return to, nil
	case kind != '0' || bytes.ContainsAny(id, ".eE"):
		return to, errors.New("the id is neither an integer nor a string")
	case string(id) == "-0":
		id = id[1:]
	}
	return append(to, id...), nil
}

// projectSet is an immutable set of projects. The key is a project's hash (intake.Key), the
// value the size of its data in bytes; 0 is unknown. The hash 0 means no project and is never
// in the set. It takes about 24 bytes a project: 47 MB for 100,000 projects at each of 20 upstreams.
type projectSet map[uint64]float32

// Contains reports whether the project with this hash is in the set.
func (p projectSet) Contains(project uint64) bool {
	_, ok := p[project]
	return ok
}

// Bytes returns the size of the project's data, or 0 if it is unknown.
func (p projectSet) Bytes(project uint64) float64 { return float64(p[project]) }

// Len returns the number of projects in the set.
func (p projectSet) Len() int { return len(p) }
