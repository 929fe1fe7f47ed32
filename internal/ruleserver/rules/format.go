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
	// NDJSON is one JSON object a line and item: every column in order, every
	// value a string, since nothing says which of a feed's texts are numbers.
	NDJSON Format = "application/x-ndjson"
	// CSV is the columns' names, then one line an item.
	CSV Format = "text/csv"
)

// chunkSize is where a chunk ends: at the first item that reaches it.
const chunkSize = 32 << 10

// Encode writes the feed as chunks of whole lines, to be sent one by one.
func (f *Feed) Encode(format Format) [][]byte {
	switch format {
	case NDJSON:
		return f.encodeNDJSON()
	case CSV:
		return f.encodeCSV()
	}
	panic(fmt.Sprintf("rules: unknown format %q", format))
}

func (f *Feed) encodeNDJSON() (chunks [][]byte) {
	names := make([][]byte, len(f.Columns)) // {"id": and ,"title": and so on
	for i, column := range f.Columns {
		opening := byte(',')
		if i == 0 {
			opening = '{'
		}
		names[i] = append(quote([]byte{opening}, column), ':')
	}
	var chunk []byte
	for _, item := range f.Items {
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
		panic("rules: a feed's text is not UTF-8: " + err.Error()) // ParseFeed and ParseJob refuse it
	}
	return to
}

func (f *Feed) encodeCSV() (chunks [][]byte) {
	buffer := new(bytes.Buffer)
	writer := csv.NewWriter(buffer)
	write := func(record []string) {
		if err := writer.Write(record); err != nil {
			panic("rules: writing to memory: " + err.Error())
		}
	}
	write(f.Columns)
	for _, item := range f.Items {
		write(item)
		// The writer holds back up to 4 KiB: flush only where a chunk may end.
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
