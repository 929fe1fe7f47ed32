package ruleserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"strings"

	"example.org/pilotfish/internal/ruleserver/rules"
)

var (
	errUnknownProject = errors.New("unknown project")
	errFeedChanged    = errors.New("the feed changed while it was fetched")
)

// feeds is the store of product data: a CSV file for each project.
type feeds struct {
	files    fs.FS
	maxBytes int64
}

func (f feeds) name(project string) string { return project + ".csv" }

// projects are all projects that have a feed.
func (f feeds) projects() (projects []string) {
	names, err := fs.Glob(f.files, f.name("*"))
	if err != nil {
		panic("BUG: ruleserver: the pattern of feeds: " + err.Error())
	}
	for _, name := range names {
		if project := strings.TrimSuffix(name, f.name("")); rules.ValidProject(project) {
			projects = append(projects, project)
		}
	}
	return projects
}

// version returns the version of a project's data. It changes with the file.
func (f feeds) version(project string) (int64, error) {
	if !rules.ValidProject(project) { // callers have checked it; this protects the file system
		return 0, fmt.Errorf("%w %q", errUnknownProject, project)
	}
	info, err := fs.Stat(f.files, f.name(project))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w %s: there is no feed %s", errUnknownProject, project, f.name(project))
	}
	if err != nil {
		return 0, fmt.Errorf("feed %s: %w", f.name(project), err)
	}
	return versionOf(info), nil
}

// versionOf is a hash of 53 bits, because many JSON readers keep no more of a number.
func versionOf(info fs.FileInfo) int64 {
	hash := fnv.New64a()
	var data [16]byte
	binary.LittleEndian.PutUint64(data[:8], uint64(info.ModTime().UnixNano()))
	binary.LittleEndian.PutUint64(data[8:], uint64(info.Size()))
	hash.Write(data[:])
	return int64(hash.Sum64() >> 11)
}

// read returns the data of a version, or errFeedChanged when the file has changed.
func (f feeds) read(project string, version int64) (*rules.Feed, error) {
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
	if now, err := f.version(project); err != nil || now != version {
		return nil, fmt.Errorf("feed %s: %w", name, errFeedChanged)
	}
	feed, err := rules.ParseFeed(data)
	if err != nil {
		return nil, fmt.Errorf("feed %s: %w", name, err)
	}
	return feed, nil
}
