package ruleserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"example.org/pilotfish/internal/ruleserver/rules"
)

// feeds is the store of product data: a CSV file for each project.
type feeds struct {
	files    fs.FS
	maxBytes int64
}

func (f feeds) name(project rules.Project) string { return string(project) + ".csv" }

// version returns the version of a project's data, which is the file's modification time.
func (f feeds) version(project rules.Project) (int64, error) {
	if !project.Valid() { // callers have checked it; this is a second barrier before the file system
		return 0, fmt.Errorf("%w %q", errUnknownProject, project)
	}
	info, err := fs.Stat(f.files, f.name(project))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w %s: there is no feed %s", errUnknownProject, project, f.name(project))
	}
	if err != nil {
		return 0, fmt.Errorf("feed %s: %w", f.name(project), err)
	}
	return info.ModTime().UnixMicro(), nil
}

// read returns the present data. If the file changes after the call of version, the
// next job fetches it again.
func (f feeds) read(project rules.Project) (*rules.Feed, error) {
	name := f.name(project)
	file, err := f.files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("feed %s: %w", name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, f.maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("feed %s: %w", name, err)
	}
	if int64(len(data)) > f.maxBytes {
		return nil, fmt.Errorf("feed %s: larger than %d bytes", name, f.maxBytes)
	}
	feed, err := rules.ParseFeed(data)
	if err != nil {
		return nil, fmt.Errorf("feed %s: %w", name, err)
	}
	return feed, nil
}
