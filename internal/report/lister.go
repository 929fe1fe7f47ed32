package report

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// lister keeps up with the cache listing of one upstream.
type lister struct {
	by      *asker
	address string
	cached  *Projects // nil is not known
	etag    string    // of the listing that gave cached; "" is none
}

// list brings cached up to date. An upstream without a listing, as its 404
// says, has nothing known cached, and that is no failure.
func (l *lister) list(ctx context.Context) error {
	config := &l.by.config
	err := l.by.fetcher.get(ctx, request{
		url:    upstreamURL(l.address, config.CachePath),
		accept: "application/json",
		etag:   l.etag,
		max:    config.MaxCacheBytes,
	}, func(a answer) error {
		projects, err := readListing(a.body, config.MaxProjects, l.cached.Len())
		if err != nil {
			return err
		}
		l.cached, l.etag = projects, a.header.Get("ETag")
		return nil
	})
	switch {
	case l.etag != "" && errors.Is(err, statusError(http.StatusNotModified)):
		return nil
	case errors.Is(err, statusError(http.StatusNotFound)):
		l.cached, l.etag = nil, ""
		return nil
	}
	return err
}

// upstreamURL returns where path, which a Config holds, is at the upstream.
func upstreamURL(address, path string) string {
	return (&url.URL{Scheme: "http", Host: address}).String() + path
}
