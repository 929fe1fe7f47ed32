// Package wirecases is requests and answers that others test their HTTP/1.1 parsers with, for
// tests of ours. What is made of each stands beside it.
package wirecases

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed requests.txt
var requests string

//go:embed answers.txt
var answers string

// Case is what one side sends on a connection before it ends its own direction.
type Case struct {
	Text string // as in the file
	Sent string
	Ends bool   // the submitter leaves after it
	Want string // what both sides get through pilotfish
}

// Requests are what submitters send, Answers what upstreams do.
func Requests() []Case { return parse(requests) }

// Answers are what upstreams send.
func Answers() []Case { return parse(answers) }

// short are the abbreviations of the files.
var short = strings.NewReplacer("|", `\r\n`, "@", `Host: localhost\r\n`)

func parse(file string) (all []Case) {
	for i, line := range strings.Split(strings.TrimSuffix(file, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		text, want, _ := strings.Cut(line, " => ")
		sent, err := strconv.Unquote(`"` + short.Replace(text) + `"`)
		if err != nil {
			panic(fmt.Sprintf("BUG: wirecases: line %d: %q: %v", i+1, text, err))
		}
		sent, ends := strings.CutSuffix(sent, "~")
		all = append(all, Case{Text: text, Sent: sent, Ends: ends, Want: want})
	}
	return all
}
