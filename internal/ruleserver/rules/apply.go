package rules

import (
	"fmt"
	"slices"
	"strings"
)

// maxColumns bounds a feed's columns, those that a job adds included.
const maxColumns = 1_000

// TooLarge is the error of rules whose result exceeds the server's limit.
type TooLarge struct{ reason string }

func (t *TooLarge) Error() string { return "the rules make a feed of more than " + t.reason }

// Apply applies operators to f, and returns the new feed and what the optimisation phase
// saved. It does not change f. Changes of fields that the presentation omits can be left out. The error is a *TooLarge
// if the result has more than limit bytes, as counted by Feed.Bytes, or more than 1,000 columns.
func Apply(f *Feed, operators Operators, p Presentation, limit int64) (*Feed, Saved, error) {
	columns, err := layout(f.columns, operators)
	if err != nil {
		return nil, Saved{}, err
	}
	operators, omitted := p.dropOmitted(operators)
	operators, saved := optimise(operators, f.columns, columns)
	saved.Operators += omitted
	e := evaluation{column: make(map[string]int, len(columns)), limit: limit, left: limit}
	for i, name := range columns {
		e.column[name] = i
	}
	out := &Feed{columns: columns, items: make([]row, 0, len(f.items))}
	for _, from := range f.items {
		item := make(row, len(columns))
		for i, field := range from {
			item[e.column[f.columns[i]]] = field
		}
		stays, err := e.item(item, operators)
		if err != nil {
			return nil, saved, err
		}
		if stays {
			out.items = append(out.items, item)
		}
	}
	return out, saved, nil
}

// evaluation applies operators to the items of one feed.
type evaluation struct {
	column      map[string]int // index of each field
	limit, left int64          // maximum bytes of the result, and how many are left
}

// item applies the operators to one item, and reports whether it stays in the feed. A removed item
// skips the remaining operators.
func (e *evaluation) item(item row, operators Operators) (stays bool, err error) {
	if err := e.grow(item.bytes()); err != nil {
		return false, err
	}
	for i := range operators {
		actions := operators[i].Actions
		for j := range operators[i].Conditions {
			if !e.holds(&operators[i].Conditions[j], item) {
				actions = operators[i].Otherwise
				break
			}
		}
		for j := range actions {
			if actions[j].Field == allFields {
				return false, e.grow(-item.bytes())
			}
			if err := e.act(&actions[j], item); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// holds reports whether the condition's own filter is true, or one of its children.
func (e *evaluation) holds(c *Condition, item row) bool {
	value := ""
	if len(c.Value) > 0 {
		value = e.text(c.Value[0], item)
	}
	if filters[c.Filter].holds(e.field(c.Field, item), value) {
		return true
	}
	for i := range c.Children {
		if e.holds(&c.Children[i], item) {
			return true
		}
	}
	return false
}

func (e *evaluation) field(name string, item row) string {
	if at, ok := e.column[name]; ok {
		return item[at]
	}
	return "" // no item has it
}

func (e *evaluation) text(o operand, item row) string {
	if o.Type == ofField {
		return e.field(string(o.Text), item)
	}
	return string(o.Text)
}

// act changes a field. It checks the limit before it builds the new text.
func (e *evaluation) act(a *Action, item row) error {
	at, ok := e.column[a.Field]
	if !ok {
		return nil // no item has the field, so there is nothing to change
	}
	was := item[at]
	if a.Kind == actionTransform {
		item[at] = transforms[string(a.Value[0].Text)](was)
		return e.grow(int64(len(item[at]) - len(was)))
	}
	size := -len(was)
	texts := make([]string, len(a.Value)) // none for remove
	for i, value := range a.Value {
		texts[i] = e.text(value, item)
		size += len(texts[i])
	}
	if err := e.grow(int64(size)); err != nil {
		return err
	}
	item[at] = strings.Join(texts, "")
	return nil
}

// grow adds n bytes to the size of the result; n can be negative. A rule can
// double a field by combining it with itself: without a limit, a small job could
// use all memory.
func (e *evaluation) grow(n int64) error {
	if e.left -= n; e.left < 0 {
		return &TooLarge{fmt.Sprintf("%d bytes", e.limit)}
	}
	return nil
}

// layout returns the columns of a feed after the operators, in order. A new column
// is inserted after the last column that its operator reads in its
// conditions or this value, or has created; without such a column it is appended. The
// thesis's example sets availability if stock is greater than zero, so
// availability comes after stock.
//
// The order depends only on the operators, never on the items, so that the output always has
// the same columns.
func layout(columns []string, operators Operators) ([]string, error) {
	columns = slices.Clone(columns)
	for _, o := range operators {
		near := fieldsOf(o.Conditions)
		for _, a := range slices.Concat(o.Actions, o.Otherwise) {
			if !a.creates() || slices.Contains(columns, a.Field) {
				continue
			}
			if len(columns) == maxColumns {
				return nil, &TooLarge{fmt.Sprintf("%d columns", maxColumns)}
			}
			place := -1
			for _, name := range append(near, a.Value.fields()...) {
				place = max(place, slices.Index(columns, name))
			}
			if place < 0 {
				place = len(columns) - 1
			}
			columns = slices.Insert(columns, place+1, a.Field)
			near = append(near, a.Field)
		}
	}
	return columns, nil
}

func fieldsOf(conditions []Condition) (fields []string) {
	for _, c := range conditions {
		fields = append(append(fields, c.Field), c.Value.fields()...)
		fields = append(fields, fieldsOf(c.Children)...)
	}
	return fields
}
