// Package wirecases holds the requests and responses with which other projects test their HTTP/1.1
// parsers. Beside each is the result that pilotfish must give.
package wirecases

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed requests.txt
var requests string

//go:embed responses.txt
var responses string

// Case is the bytes that one side sends on a connection before it closes its sending side.
type Case struct {
	Text string // as in the file
	Sent string
	Ends bool   // the submitter closes the connection after it
	Want string // what both sides receive from pilotfish
}

// Requests returns the cases of submitters.
func Requests() []Case { return parse(requests) }

// Responses returns the cases of upstreams.
func Responses() []Case { return parse(responses) }

// short expands the abbreviations in the files.
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
