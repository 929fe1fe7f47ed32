package rules

import (
	"slices"
	"strings"
)

// compiler turns conditions and actions into functions of an item. The item's
// fields are in the order of columns.
type compiler struct{ columns []string }

func compile(columns []string, operators []operator) (*program, error) {
	columns, err := layout(columns, operators)
	if err != nil {
		return nil, err
	}
	c := compiler{columns}
	p := &program{columns: columns}
	for _, o := range operators {
		p.steps = append(p.steps, step{
			when:      c.all(o.conditions),
			then:      c.acts(o.actions),
			otherwise: c.acts(o.otherwise),
		})
	}
	return p, nil
}

func (c compiler) field(name string) func(row) string {
	i := slices.Index(c.columns, name)
	if i < 0 { // no item has it
		return func(row) string { return "" }
	}
	return func(item row) string { return item[i] }
}

func (c compiler) value(v operand) func(row) string {
	if v.field != "" {
		return c.field(v.field)
	}
	return func(row) string { return v.static }
}

// all is true when every condition is.
func (c compiler) all(conditions []condition) func(row) bool {
	tests := c.tests(conditions)
	return func(item row) bool {
		for _, test := range tests {
			if !test(item) {
				return false
			}
		}
		return true
	}
}

func (c compiler) tests(conditions []condition) (tests []func(row) bool) {
	for _, one := range conditions {
		tests = append(tests, c.test(one))
	}
	return tests
}

// test is true when the condition's own filter is, or one of its children.
func (c compiler) test(one condition) func(row) bool {
	own, children := c.filter(one), c.tests(one.children)
	return func(item row) bool {
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

func (c compiler) filter(one condition) func(row) bool {
	field, value := c.field(one.field), c.value(one.value)
	switch one.filter {
	case "is_empty":
		return func(item row) bool { return field(item) == "" }
	case "is_not_empty":
		return func(item row) bool { return field(item) != "" }
	case "matches":
		return func(item row) bool { return one.pattern.MatchString(field(item)) }
	case "does_not_match":
		return func(item row) bool { return !one.pattern.MatchString(field(item)) }
	}
	holds := filters[one.filter]
	return func(item row) bool { return holds(field(item), value(item)) }
}

func (c compiler) acts(actions []action) (acts []act) {
	for _, a := range actions {
		switch at := slices.Index(c.columns, a.field); {
		case a.field == allFields:
			acts = append(acts, func(row, *room) (bool, error) { return false, nil })
		case at >= 0: // no item has a field of another name: there is nothing to change
			text := c.text(a)
			acts = append(acts, func(item row, room *room) (bool, error) {
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

// text returns a function that computes the field's new text. When the text may
// be much longer than its parts, the function asks for room before it builds it.
func (c compiler) text(a action) func(item row, field string, room *room) (string, error) {
	switch a.kind {
	case actionTransform:
		return func(_ row, field string, _ *room) (string, error) { return a.transform(field), nil }
	case actionReplace:
		by := c.value(a.values[0])
		return func(item row, field string, room *room) (string, error) {
			by := by(item)
			grows := int64(strings.Count(field, a.search)) * int64(len(by)-len(a.search))
			if err := room.has(grows); err != nil {
				return "", err
			}
			return strings.ReplaceAll(field, a.search, by), nil
		}
	}
	values := make([]func(row) string, len(a.values)) // none for remove and clear
	for i, v := range a.values {
		values[i] = c.value(v)
	}
	return func(item row, field string, room *room) (string, error) {
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
