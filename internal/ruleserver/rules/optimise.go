package rules

import (
	"maps"
	"strings"
)

// Saved counts the parts that the optimisation phase removed from a list of operators.
type Saved struct {
	Operators  int // rules that never change an item, or change only fields that the presentation omits
	Conditions int // conditions with the same result for every item
}

// optimise returns operators with the same result and less work (the optimisation phase of the thesis, 3.3):
// conditions that always hold are dropped, conditions that never hold remove their branch, actions on constants become
// one set, and rules that never change an item are dropped. columns are the feed's; a field that is
// in no column is empty for every item.
//
// It tracks, rule by rule, which fields have the same text in all remaining items. Changes of
// fields are never dropped, so that the size of the feed, and whether it exceeds its limit, do not change.
func optimise(operators Operators, columns, after []string) (Operators, Saved) {
	k := &known{text: map[string]string{}, unknown: setOf(columns), columns: setOf(after)}
	var out Operators
	var saved Saved
	for i, o := range operators {
		if k == nil { // every item was removed
			saved.Operators += len(operators) - i
			break
		}
		before := countConditions(o.Conditions)
		then, holds := k.all(&o)
		switch {
		case holds == always:
			o.Otherwise = nil
			o.Actions, k = then.actions(o.Actions)
		case holds == never:
			o.Conditions, o.Actions, o.Otherwise = nil, o.Otherwise, nil
			o.Actions, k = k.actions(o.Actions)
		default:
			var a, b *known
			o.Actions, a = then.actions(o.Actions)
			o.Otherwise, b = k.clone().actions(o.Otherwise)
			k = join(a, b)
		}
		saved.Conditions += before - countConditions(o.Conditions)
		if len(o.Actions)+len(o.Otherwise) == 0 {
			saved.Operators++
			continue
		}
		out = append(out, o)
	}
	return out, saved
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// outcome is the known result of a condition, without evaluating it.
type outcome int

const (
	sometimes outcome = iota
	always
	never
)

// known has the fields with the same text in every item. nil means that there are no items.
type known struct {
	text    map[string]string // constant fields
	unknown map[string]bool   // fields that differ between items; all others are empty
	columns map[string]bool   // fields that an action can change
}

func (k *known) clone() *known {
	return &known{text: maps.Clone(k.text), unknown: maps.Clone(k.unknown), columns: k.columns}
}

// field returns the text that a field has in every item.
func (k *known) field(name string) (text string, ok bool) {
	if k.unknown[name] {
		return "", false
	}
	return k.text[name], true
}

func (k *known) set(name, text string) {
	delete(k.unknown, name)
	k.text[name] = text
}

// fold replaces a field by its text if that is the same in every item.
func (k *known) fold(o operand) operand {
	if o.Type == ofField {
		if text, ok := k.field(string(o.Text)); ok {
			return operand{ofText, scalar(text)}
		}
	}
	return o
}

// all simplifies an operator's conditions. then is the knowledge about items that meet all of them.
func (k *known) all(o *Operator) (then *known, _ outcome) {
	var left []Condition
	then = k.clone()
	for _, c := range o.Conditions {
		switch c, holds := then.condition(c); holds {
		case never:
			return then, never
		case sometimes:
			left = append(left, c)
			if c.Filter == "is_empty" && len(c.Children) == 0 {
				then.set(c.Field, "")
			}
		}
	}
	o.Conditions = left
	if len(left) == 0 {
		return then, always
	}
	return then, sometimes
}

// condition simplifies a condition, which is true if its own filter or one of its children is true.
func (k *known) condition(c Condition) (Condition, outcome) {
	var left []Condition
	own := c
	own.Children = nil
	if len(c.Value) > 0 {
		own.Value = operands{k.fold(c.Value[0])}
	}
	switch k.filter(&own) {
	case always:
		return Condition{}, always
	case sometimes:
		left = append(left, own)
	}
	for _, child := range c.Children {
		switch child, holds := k.condition(child); holds {
		case always:
			return Condition{}, always
		case sometimes:
			left = append(left, child)
		}
	}
	if len(left) == 0 {
		return Condition{}, never
	}
	first := left[0]
	first.Children = append(first.Children[:len(first.Children):len(first.Children)], left[1:]...)
	return first, sometimes
}

func (k *known) filter(c *Condition) outcome {
	field, ok := k.field(c.Field)
	value := ""
	if len(c.Value) > 0 {
		value = string(c.Value[0].Text)
		ok = ok && c.Value[0].Type == ofText
	}
	switch {
	case !ok:
		return sometimes
	case filters[c.Filter].holds(field, value):
		return always
	}
	return never
}

// actions simplifies actions, and returns what is known after them.
func (k *known) actions(actions []Action) ([]Action, *known) {
	var left []Action
	for _, a := range actions {
		if a.Field == allFields {
			return append(left, a), nil
		}
		if !k.columns[a.Field] {
			continue // no item has the field, so there is nothing to change
		}
		text, constant := k.made(&a)
		if was, ok := k.field(a.Field); ok && constant && was == text {
			continue
		}
		if delete(k.text, a.Field); constant {
			k.set(a.Field, text)
		} else {
			k.unknown[a.Field] = true
		}
		left = append(left, a)
	}
	return left, k
}

// made returns the text that an action writes, if it is the same for every item.
func (k *known) made(a *Action) (text string, constant bool) {
	if a.Kind == actionTransform {
		was, ok := k.field(a.Field)
		if !ok {
			return "", false
		}
		text = transforms[string(a.Value[0].Text)](was)
		a.Kind, a.Value = actionSet, operands{{ofText, scalar(text)}}
		return text, true
	}
	var texts []string
	folded := make(operands, 0, len(a.Value))
	for _, value := range a.Value {
		value = k.fold(value)
		folded = append(folded, value)
		if value.Type == ofText {
			texts = append(texts, string(value.Text))
		}
	}
	if a.Value = folded; len(texts) < len(folded) {
		return "", false
	}
	text = strings.Join(texts, "")
	if a.Kind == actionCombine {
		a.Kind, a.Value = actionSet, operands{{ofText, scalar(text)}}
	}
	return text, true
}

// join returns what both have in common: what is known of all items of two sets.
func join(a, b *known) *known {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	for name := range b.unknown {
		a.unknown[name] = true
		delete(a.text, name)
	}
	for _, texts := range []map[string]string{maps.Clone(a.text), b.text} {
		for name := range texts {
			if a.text[name] != b.text[name] {
				a.unknown[name] = true
				delete(a.text, name)
			}
		}
	}
	return a
}

func countConditions(conditions []Condition) (n int) {
	for i := range conditions {
		n += 1 + countConditions(conditions[i].Children)
	}
	return n
}
