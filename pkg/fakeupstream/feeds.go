package fakeupstream

import (
	"io/fs"
	"testing/fstest"
)

// everyProject is a file system where every project has the same feed.
type everyProject struct{}

func (everyProject) Open(name string) (fs.File, error) {
	return fstest.MapFS{name: {Data: []byte(ThesisFeed), Mode: 0o400}}.Open(name)
}
