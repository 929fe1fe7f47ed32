package rules

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// condition is true for an item when its own filter is, or one of its children.
type condition struct {
	field    string
	filter   string
	value    operand        // unused by is_empty and is_not_empty
	pattern  *regexp.Regexp // of matches and does_not_match
	children []condition
}

type wireCondition struct {
	Field    string          `json:"field"`
	Filter   string          `json:"filter"`
	Value    jsontext.Value  `json:"value"`
	Children []wireCondition `json:"children"`
}

// parseConditions reads a list of conditions and, below them, their children.
func parseConditions(path jsontext.Pointer, wires []wireCondition, depth int) ([]condition, error) {
	if depth > maxDepth && len(wires) > 0 {
		return nil, malformed(path, "conditions nested deeper than %d", maxDepth)
	}
	conditions := make([]condition, len(wires))
	for i, wire := range wires {
		here := at(path, i)
		one, err := wire.parse(here)
		if err != nil {
			return nil, err
		}
		one.children, err = parseConditions(here+"/children", wire.Children, depth+1)
		if err != nil {
			return nil, err
		}
		conditions[i] = one
	}
	return conditions, nil
}

func (w wireCondition) parse(path jsontext.Pointer) (c condition, err error) {
	if w.Field == "" {
		return c, malformed(path+"/field", "missing")
	}
	c = condition{field: w.Field, filter: w.Filter}
	switch w.Filter {
	case "":
		return c, malformed(path+"/filter", "missing")
	case "is_empty", "is_not_empty":
		if len(w.Value) > 0 {
			return c, malformed(path+"/value", "%s takes no value", w.Filter)
		}
		return c, nil
	case "matches", "does_not_match":
		c.value, err = parseOperand(path+"/value", w.Value)
		if err != nil {
			return c, err
		}
		if c.value.field != "" {
			return c, malformed(path+"/value", "%s takes a static pattern", w.Filter)
		}
		c.pattern, err = regexp.Compile(c.value.static)
		if err != nil {
			return c, malformed(path+"/value", "not an RE2 pattern: %v", err)
		}
		return c, nil
	}
	if filters[w.Filter] == nil {
		return c, malformed(path+"/filter", "unknown filter %.40q; known are %s", w.Filter, filterNames())
	}
	c.value, err = parseOperand(path+"/value", w.Value)
	return c, err
}

// filters are the filters that compare a field with a value. wireCondition.parse
// and compiler.filter know four more: is_empty and is_not_empty, which take no
// value, and matches and does_not_match, which take a static pattern.
var filters = map[string]func(field, value string) bool{
	"is_equal":            isEqual,
	"is_not_equal":        not(isEqual),
	"is_less_than":        numeric(func(order int) bool { return order < 0 }),
	"is_less_equal":       numeric(func(order int) bool { return order <= 0 }),
	"is_greater_than":     numeric(func(order int) bool { return order > 0 }),
	"is_greater_equal":    numeric(func(order int) bool { return order >= 0 }),
	"contains":            strings.Contains,
	"does_not_contain":    not(strings.Contains),
	"starts_with":         strings.HasPrefix,
	"does_not_start_with": not(strings.HasPrefix),
	"ends_with":           strings.HasSuffix,
	"does_not_end_with":   not(strings.HasSuffix),
}

// isEqual compares as numbers when both are numbers, so that 15 equals 15.00.
func isEqual(field, value string) bool {
	a, aok := number(field)
	b, bok := number(value)
	if aok && bok {
		return a == b
	}
	return field == value
}

// numeric makes a filter that compares numbers. It is false when the field or the
// value is not a number.
func numeric(holds func(order int) bool) func(field, value string) bool {
	return func(field, value string) bool {
		a, aok := number(field)
		b, bok := number(value)
		return aok && bok && holds(cmp.Compare(a, b))
	}
}

func not(filter func(field, value string) bool) func(field, value string) bool {
	return func(field, value string) bool { return !filter(field, value) }
}

func filterNames() string {
	names := append(slices.Collect(maps.Keys(filters)),
		"is_empty", "is_not_empty", "matches", "does_not_match")
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// number reads a field as a decimal number. Empty text, words such as "inf",
// hexadecimal and numbers beyond float64 are not numbers.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsInf(n, 0)
}
