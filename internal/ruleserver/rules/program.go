package rules

import "slices"

// MaxColumns bounds a feed's columns, those that a job adds included.
const MaxColumns = 1_000

// program is a list of operators compiled against a feed's columns: names are
// looked up once, not once an item.
type program struct {
	columns []string // of the output
	steps   []step   // one an operator
}

type step struct {
	when            func(Item) bool
	then, otherwise []act
}

// act changes an item in place, and reports whether the item stays in the feed.
type act func(item Item, room *room) (stays bool, err error)

// Apply gives the feed that the operators make of f, which it leaves as it is.
// A result with more than limit bytes, as counted by Feed.Bytes, or with more
// than MaxColumns is a *TooLarge.
func Apply(f *Feed, operators []Operator, limit int64) (*Feed, error) {
	p, err := compile(f.Columns, operators)
	if err != nil {
		return nil, err
	}
	place := make([]int, len(f.Columns)) // where each input column is in the output
	for i, name := range f.Columns {
		place[i] = slices.Index(p.columns, name)
	}
	room := &room{limit: limit, left: limit}
	out := &Feed{Columns: p.columns, Items: make([]Item, 0, len(f.Items))}
	for _, from := range f.Items {
		item := make(Item, len(p.columns))
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
			out.Items = append(out.Items, item)
		} else if err := room.take(-item.bytes()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// run takes one item through the operators; a removed item skips the rest.
func (p *program) run(item Item, room *room) (stays bool, err error) {
	for _, s := range p.steps {
		acts := s.otherwise
		if s.when(item) {
			acts = s.then
		}
		for _, act := range acts {
			if stays, err := act(item, room); err != nil || !stays {
				return false, err
			}
		}
	}
	return true, nil
}
