package rules

import (
	"fmt"
	"slices"
	"strings"
)

// maxColumns bounds a feed's columns, those that a job adds included.
const maxColumns = 1_000

// TooLarge says that rules make a feed grow beyond what the server allows.
type TooLarge struct{ reason string }

func (t *TooLarge) Error() string { return "the rules make a feed of more than " + t.reason }

// Apply returns the feed that the operators make of f, and what the optimisation of the operators
// saved. It does not change f. Fields that the presentation omits can lack changes. The error is a *TooLarge when the result has more than limit bytes, as
// counted by Feed.Bytes, or more than 1,000 columns.
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
	column      map[string]int // the place of each field
	limit, left int64          // bytes of the result, and those that it may still grow by
}

// item changes one item, and reports whether it stays in the feed. A removed item
// skips the rest of the operators.
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

// act changes a field. It asks for room before it builds the new text.
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

// grow counts n more bytes of the result, or fewer when n is negative. A rule can
// double a field by combining it with itself: without a bound, a small job would
// take all memory.
func (e *evaluation) grow(n int64) error {
	if e.left -= n; e.left < 0 {
		return &TooLarge{fmt.Sprintf("%d bytes", e.limit)}
	}
	return nil
}

// layout returns the columns of a feed after the operators, in order. A new column
// stands to the right of the rightmost column that its operator reads in its
// conditions or this value, or made before; without one it stands at the end. The
// thesis's example sets availability where stock is greater than zero, so
// availability stands right of stock.
//
// The order depends only on the operators, never on the items: the output has the
// same columns on every day.
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
