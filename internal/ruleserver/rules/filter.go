package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// filters maps each filter that compares a field with a value to its test.
// is_empty, is_not_empty, matches and does_not_match are beside it, in
// Condition: the first two take no value, the others a static pattern.
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

// numeric makes a filter of an order; whatever is not a number satisfies none.
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
