package rules

import (
	"slices"
	"strings"
)

// compiler turns conditions and actions into functions of an item whose fields
// are in the order of its columns.
type compiler struct{ columns []string }

func compile(columns []string, operators []Operator) (*program, error) {
	columns, err := layout(columns, operators)
	if err != nil {
		return nil, err
	}
	c := compiler{columns}
	p := &program{columns: columns}
	for _, o := range operators {
		p.steps = append(p.steps, step{
			when:      c.all(o.Conditions),
			then:      c.acts(o.Actions),
			otherwise: c.acts(o.Else),
		})
	}
	return p, nil
}

func (c compiler) field(name string) func(Item) string {
	i := slices.Index(c.columns, name)
	if i < 0 { // no item has it
		return func(Item) string { return "" }
	}
	return func(item Item) string { return item[i] }
}

func (c compiler) value(v Value) func(Item) string {
	if v.Field != "" {
		return c.field(v.Field)
	}
	return func(Item) string { return v.Static }
}

// all holds when every condition does.
func (c compiler) all(conditions []Condition) func(Item) bool {
	tests := c.tests(conditions)
	return func(item Item) bool {
		for _, test := range tests {
			if !test(item) {
				return false
			}
		}
		return true
	}
}

func (c compiler) tests(conditions []Condition) (tests []func(Item) bool) {
	for _, condition := range conditions {
		tests = append(tests, c.test(condition))
	}
	return tests
}

// test holds when the condition's own filter does, or any of its children.
func (c compiler) test(condition Condition) func(Item) bool {
	own, children := c.filter(condition), c.tests(condition.Children)
	return func(item Item) bool {
		if own(item) {
			return true
		}
		for _, child := range children {
			if child(item) {
				return true
			}
		}
		return false
	}
}

func (c compiler) filter(condition Condition) func(Item) bool {
	field, value := c.field(condition.Field), c.value(condition.Value)
	switch condition.Filter {
	case "is_empty":
		return func(item Item) bool { return field(item) == "" }
	case "is_not_empty":
		return func(item Item) bool { return field(item) != "" }
	case "matches":
		return func(item Item) bool { return condition.Pattern.MatchString(field(item)) }
	case "does_not_match":
		return func(item Item) bool { return !condition.Pattern.MatchString(field(item)) }
	}
	holds := filters[condition.Filter]
	return func(item Item) bool { return holds(field(item), value(item)) }
}

func (c compiler) acts(actions []Action) (acts []act) {
	for _, a := range actions {
		switch at := slices.Index(c.columns, a.Field); {
		case a.Field == AllFields:
			acts = append(acts, func(Item, *room) (bool, error) { return false, nil })
		case at >= 0: // else there is nothing to change
			text := c.text(a)
			acts = append(acts, func(item Item, room *room) (bool, error) {
				was := len(item[at])
				written, err := text(item, item[at], room)
				if err != nil {
					return false, err
				}
				item[at] = written
				return true, room.take(int64(len(written) - was))
			})
		}
	}
	return acts
}

// text gives what the action makes of a field. Where that may be much longer
// than its parts, it asks for room before it builds it.
func (c compiler) text(a Action) func(item Item, field string, room *room) (string, error) {
	switch a.Kind {
	case TextTransform:
		return func(_ Item, field string, _ *room) (string, error) { return a.Transform(field), nil }
	case Replace:
		by := c.value(a.Values[0])
		return func(item Item, field string, room *room) (string, error) {
			by := by(item)
			grows := int64(strings.Count(field, a.Search)) * int64(len(by)-len(a.Search))
			if err := room.has(grows); err != nil {
				return "", err
			}
			return strings.ReplaceAll(field, a.Search, by), nil
		}
	}
	values := make([]func(Item) string, len(a.Values)) // none for remove and clear
	for i, v := range a.Values {
		values[i] = c.value(v)
	}
	return func(item Item, field string, room *room) (string, error) {
		if len(values) == 1 {
			return values[0](item), nil
		}
		var size int64
		for _, value := range values {
			size += int64(len(value(item)))
		}
		if err := room.has(size - int64(len(field))); err != nil {
			return "", err
		}
		var b strings.Builder
		b.Grow(int(size))
		for _, value := range values {
			b.WriteString(value(item))
		}
		return b.String(), nil
	}
}
