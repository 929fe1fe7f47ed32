package rules

import (
	"bytes"
	"encoding/csv"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Format is how an answer is written.
type Format string

const (
	// NDJSON is one JSON object on a line for each item. It has every column, in
	// order. Each value is a string: a feed does not say which texts are numbers.
	NDJSON Format = "application/x-ndjson"
	// CSV is a line with the names of the columns, then one line for each item.
	CSV Format = "text/csv"
)

// chunkSize is in bytes. A chunk ends with the first item that reaches it.
const chunkSize = 32 << 10

// Encode writes the feed as chunks of whole lines, ready to send one by one.
func (f *Feed) Encode(format Format) [][]byte {
	switch format {
	case NDJSON:
		return f.encodeNDJSON()
	case CSV:
		return f.encodeCSV()
	}
	panic(fmt.Sprintf("BUG: rules: unknown format %q", format))
}

func (f *Feed) encodeNDJSON() (chunks [][]byte) {
	names := make([][]byte, len(f.columns)) // {"id": and ,"title": and so on
	for i, column := range f.columns {
		opening := byte(',')
		if i == 0 {
			opening = '{'
		}
		names[i] = append(quote([]byte{opening}, column), ':')
	}
	var chunk []byte
	for _, item := range f.items {
		for i, field := range item {
			chunk = quote(append(chunk, names[i]...), field)
		}
		chunk = append(chunk, '}', '\n')
		if len(chunk) >= chunkSize {
			chunks, chunk = append(chunks, chunk), nil
		}
	}
	if len(chunk) > 0 {
		chunks = append(chunks, chunk)
	}
	return chunks
}

func quote(to []byte, text string) []byte {
	to, err := jsontext.AppendQuote(to, text)
	if err != nil {
		panic("BUG: rules: a feed's text is not UTF-8: " + err.Error()) // ParseFeed and ParseJob refuse it
	}
	return to
}

func (f *Feed) encodeCSV() (chunks [][]byte) {
	buffer := new(bytes.Buffer)
	writer := csv.NewWriter(buffer)
	write := func(record []string) {
		if err := writer.Write(record); err != nil {
			panic("BUG: rules: writing to memory: " + err.Error())
		}
	}
	write(f.columns)
	for _, item := range f.items {
		write(item)
		// The writer buffers up to 4 KiB more, so a chunk may be a little larger.
		if buffer.Len() < chunkSize {
			continue
		}
		writer.Flush()
		chunks = append(chunks, buffer.Bytes())
		buffer = new(bytes.Buffer)
		writer = csv.NewWriter(buffer)
	}
	writer.Flush()
	if buffer.Len() > 0 {
		chunks = append(chunks, buffer.Bytes())
	}
	return chunks
}
