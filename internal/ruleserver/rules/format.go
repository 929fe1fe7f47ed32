package rules

import (
	"bytes"
	"encoding/csv"

	"github.com/go-json-experiment/json/jsontext"
)

// Format is the media type of a result.
type Format string

const (
	// NDJSON is one JSON object per item and line. It has every column, in
	// order. All values are strings, because a feed has no types.
	NDJSON Format = "application/x-ndjson"
	// CSV is a line with the names of the columns, then one line for each item.
	CSV Format = "text/csv"
)

// Encode writes the feed.
func (f *Feed) Encode(format Format) []byte {
	if format == CSV {
		var out bytes.Buffer
		writer := csv.NewWriter(&out)
		_ = writer.Write(f.columns) // writing to memory cannot fail
		for _, item := range f.items {
			_ = writer.Write(item)
		}
		writer.Flush()
		return out.Bytes()
	}
	var out []byte
	for _, item := range f.items {
		separator := byte('{')
		for i, field := range item {
			out = quote(append(out, separator), f.columns[i])
			out = quote(append(out, ':'), field)
			separator = ','
		}
		out = append(out, "}\n"...)
	}
	return out
}

func quote(to []byte, text string) []byte {
	to, err := jsontext.AppendQuote(to, text)
	if err != nil {
		panic("BUG: rules: a feed's text is not UTF-8: " + err.Error()) // ParseFeed and ParseJob reject that
	}
	return to
}
