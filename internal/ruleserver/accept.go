package ruleserver

import (
	"mime"
	"strconv"
	"strings"

	"example.org/pilotfish/internal/ruleserver/rules"
)

// formatOf reads an Accept header: CSV when that is asked for by name, and more
// than NDJSON is.
func formatOf(accept string) rules.Format {
	if quality(accept, string(rules.CSV)) > quality(accept, string(rules.NDJSON)) {
		return rules.CSV
	}
	return rules.NDJSON
}

// quality is how much an Accept or Accept-Encoding header wants what it names: 0
// when it does not name it, else 1 or what its q says.
func quality(accept, name string) float64 {
	for element := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(element)
		if err != nil || media != name {
			continue
		}
		text, given := parameters["q"]
		if !given {
			return 1
		}
		q, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0
		}
		return q
	}
	return 0
}
