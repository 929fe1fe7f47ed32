package rules

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Feed is a project's product data. It is immutable once made: applying rules
// makes another one, so that a cached feed may be read by many jobs at once.
type Feed struct {
	Columns []string
	Items   []Item
}

// Item is one product's fields, in the order of the feed's columns.
type Item []string

// Bytes is the feed's size in memory, near enough to bound a cache.
func (f *Feed) Bytes() (n int64) {
	for _, item := range f.Items {
		n += item.bytes()
	}
	return n
}

func (i Item) bytes() int64 {
	const overhead = 16 // of a field beside its text
	n := len(i) * overhead
	for _, field := range i {
		n += len(field)
	}
	return int64(n)
}

// ParseFeed reads CSV whose first record names the columns. Errors name the
// line.
func ParseFeed(data []byte) (*Feed, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // spreadsheets begin files with it
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	reader := csv.NewReader(bytes.NewReader(data))
	columns, err := reader.Read()
	if err == io.EOF {
		return nil, errors.New("empty: want a first line that names the columns")
	}
	if err != nil {
		return nil, err
	}
	if len(columns) > MaxColumns {
		return nil, fmt.Errorf("line 1: %d columns, and at most %d are allowed", len(columns), MaxColumns)
	}
	seen := make(map[string]bool, len(columns))
	for i, name := range columns {
		if name == "" || seen[name] {
			return nil, fmt.Errorf("line 1: column %d is named %q: want a name of its own", i+1, name)
		}
		seen[name] = true
	}
	feed := &Feed{Columns: columns}
	for {
		record, err := reader.Read()
		if err == io.EOF {
			return feed, nil
		}
		if err != nil {
			return nil, err
		}
		feed.Items = append(feed.Items, record)
	}
}
