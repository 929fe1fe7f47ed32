// Package example holds the thesis's example: job.json is listing 1, a job of high
// priority for project 12345; feeds has that project's data, table 1; answer.csv is
// the job's result, table 2.
package example

import (
	"embed"
	"io/fs"
)

//go:embed job.json feeds/12345.csv
var files embed.FS

// Job returns the text of job.json.
func Job() string {
	text, err := files.ReadFile("job.json")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// AnyFeeds returns a folder in which every project has the feed of project 12345.
func AnyFeeds() fs.FS { return anyFeeds{} }

type anyFeeds struct{}

func (anyFeeds) Open(string) (fs.File, error) { return files.Open("feeds/12345.csv") }
