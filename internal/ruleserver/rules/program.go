package rules

import (
	"fmt"
	"slices"
)

// maxColumns bounds a feed's columns, those that a job adds included.
const maxColumns = 1_000

// program is a list of operators compiled for a feed's columns: it looks up each
// name once, not once for each item.
type program struct {
	columns []string // of the output
	steps   []step   // one for each operator
}

type step struct {
	when            func(row) bool
	then, otherwise []act
}

// act changes an item in place, and reports whether the item stays in the feed.
type act func(item row, room *room) (stays bool, err error)

// Apply returns the feed that the operators make of f. It does not change f. The
// error is a *TooLarge when the result has more than limit bytes, as counted by
// Feed.Bytes, or more than 1,000 columns.
func Apply(f *Feed, operators Operators, limit int64) (*Feed, error) {
	p, err := compile(f.columns, operators.list)
	if err != nil {
		return nil, err
	}
	place := make([]int, len(f.columns)) // where each input column is in the output
	for i, name := range f.columns {
		place[i] = slices.Index(p.columns, name)
	}
	room := &room{limit: limit, left: limit}
	out := &Feed{columns: p.columns, items: make([]row, 0, len(f.items))}
	for _, from := range f.items {
		item := make(row, len(p.columns))
		for i, field := range from {
			item[place[i]] = field
		}
		if err := room.take(item.bytes()); err != nil {
			return nil, err
		}
		stays, err := p.run(item, room)
		if err != nil {
			return nil, err
		}
		if stays {
			out.items = append(out.items, item)
		} else if err := room.take(-item.bytes()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// run applies the operators to one item. A removed item skips the rest of them.
func (p *program) run(item row, room *room) (stays bool, err error) {
	for _, s := range p.steps {
		acts := s.otherwise
		if s.when(item) {
			acts = s.then
		}
		for _, change := range acts {
			if stays, err := change(item, room); err != nil || !stays {
				return false, err
			}
		}
	}
	return true, nil
}

// TooLarge says that rules make a feed grow beyond what the server allows.
type TooLarge struct{ reason string }

func (t *TooLarge) Error() string { return "the rules make a feed of " + t.reason }

func tooLarge(format string, args ...any) error {
	return &TooLarge{reason: fmt.Sprintf(format, args...)}
}

// room counts the bytes that a result may still grow by. A rule can double a field
// by combining it with itself: without a bound, a small job would take all memory.
type room struct{ limit, left int64 }

// has returns an error when n more bytes do not fit.
func (r *room) has(n int64) error {
	if n > r.left {
		return tooLarge("more than %d bytes", r.limit)
	}
	return nil
}

// take counts n more bytes, or fewer when n is negative.
func (r *room) take(n int64) error {
	r.left -= n
	return r.has(0)
}
