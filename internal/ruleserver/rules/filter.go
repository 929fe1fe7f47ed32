package rules

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filter compares a field with a value.
type filter struct {
	values int // number of values that it needs: 0 or 1
	holds  func(field, value string) bool
}

var filters = map[string]filter{
	"is_empty":         {0, func(field, _ string) bool { return field == "" }},
	"is_not_empty":     {0, func(field, _ string) bool { return field != "" }},
	"is_equal":         {1, isEqual},
	"is_not_equal":     {1, func(field, value string) bool { return !isEqual(field, value) }},
	"is_less_than":     {1, numeric(func(order int) bool { return order < 0 })},
	"is_less_equal":    {1, numeric(func(order int) bool { return order <= 0 })},
	"is_greater_than":  {1, numeric(func(order int) bool { return order > 0 })},
	"is_greater_equal": {1, numeric(func(order int) bool { return order >= 0 })},
	"contains":         {1, strings.Contains},
	"does_not_contain": {1, func(field, value string) bool { return !strings.Contains(field, value) }},
}

// isEqual compares numerically if both are numbers, so that 15 equals 15.00.
func isEqual(field, value string) bool {
	a, aok := number(field)
	b, bok := number(value)
	if aok && bok {
		return a == b
	}
	return field == value
}

// numeric returns a filter that compares numbers. It is false if the field or the
// value is not a number.
func numeric(holds func(order int) bool) func(field, value string) bool {
	return func(field, value string) bool {
		a, aok := number(field)
		b, bok := number(value)
		return aok && bok && holds(cmp.Compare(a, b))
	}
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

// transforms are the functions of the action texttransform by name.
var transforms = map[string]func(string) string{
	"capitalize": capitalize,
	"uppercase":  strings.ToUpper,
	"lowercase":  strings.ToLower,
}

// capitalize converts the first letter to upper case.
func capitalize(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if upper := unicode.ToTitle(first); upper != first {
		return string(upper) + text[size:]
	}
	return text
}
