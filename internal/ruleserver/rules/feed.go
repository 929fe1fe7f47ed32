package rules

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Feed is a project's product data. A feed is immutable: rules make a new one,
// so that several jobs can read a cached feed at the same time.
type Feed struct {
	columns []string
	items   []row
}

// row is one item (a product): its fields, in the order of the feed's columns.
type row []string

// Len is the number of items.
func (f *Feed) Len() int { return len(f.items) }

// Bytes returns the feed's approximate size in memory, to bound a cache.
func (f *Feed) Bytes() (n int64) {
	for _, item := range f.items {
		n += item.bytes()
	}
	return n
}

func (r row) bytes() int64 {
	const overhead = 16 // bytes of a field in addition to its text
	n := len(r) * overhead
	for _, field := range r {
		n += len(field)
	}
	return int64(n)
}

// ParseFeed reads CSV. The first record names the columns. Errors name the line.
func ParseFeed(data []byte) (*Feed, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // byte order mark of spreadsheet programs
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	reader := csv.NewReader(bytes.NewReader(data))
	columns, err := reader.Read()
	if err == io.EOF {
		return nil, errors.New("empty: the first line must name the columns")
	}
	if err != nil {
		return nil, err
	}
	if len(columns) > maxColumns {
		return nil, fmt.Errorf("line 1: %d columns, at most %d are allowed", len(columns), maxColumns)
	}
	seen := make(map[string]bool, len(columns))
	for i, name := range columns {
		if name == "" || seen[name] {
			return nil, fmt.Errorf("line 1: column %d has the name %q, which is empty or not unique", i+1, name)
		}
		seen[name] = true
	}
	feed := &Feed{columns: columns}
	for {
		record, err := reader.Read()
		if err == io.EOF {
			return feed, nil
		}
		if err != nil {
			return nil, err
		}
		feed.items = append(feed.items, record)
	}
}
