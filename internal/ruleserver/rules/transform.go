package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// transforms maps the values of the action texttransform to what they do.
var transforms = map[string]func(string) string{
	"capitalize": capitalize,
	"uppercase":  strings.ToUpper,
	"lowercase":  strings.ToLower,
	"trim":       strings.TrimSpace,
}

// capitalize makes the first letter upper case and leaves the rest.
func capitalize(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if upper := unicode.ToTitle(first); upper != first {
		return string(upper) + text[size:]
	}
	return text
}
