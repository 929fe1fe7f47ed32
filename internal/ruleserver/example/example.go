// Package example holds the thesis's example: job.json is its listing 1, a job
// of high priority for project 12345. feeds has that project's data, its table
// 1, and answer.csv is what the job makes of it, its table 2.
package example

import (
	"embed"
	"io/fs"
)

//go:embed job.json feeds
var files embed.FS

// Job is the text of job.json.
func Job() string {
	text, err := files.ReadFile("job.json")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// Feeds is the folder feeds.
func Feeds() fs.FS {
	folder, err := fs.Sub(files, "feeds")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return folder
}

// AnyFeeds has a feed for every project: that of project 12345.
func AnyFeeds() fs.FS { return anyFeeds{} }

type anyFeeds struct{}

func (anyFeeds) Open(string) (fs.File, error) { return files.Open("feeds/12345.csv") }
