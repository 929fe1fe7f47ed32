package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		filter, field, value string
		want                 bool
	}{
		{"is_equal", "15.00", "15", true},
		{"is_equal", "a", "a", true},
		{"is_equal", "a", "A", false},
		{"is_equal", "", "0", false},
		{"is_not_equal", "1e1", "10", false},
		{"is_less_than", "9", "10", true}, // as text, "9" is greater
		{"is_less_than", "10", "10", false},
		{"is_less_equal", "10.0", "10", true},
		{"is_greater_than", "-1", "-2", true},
		{"is_greater_than", "2", "2", false},
		{"is_greater_equal", " 2 ", "2", true},
		{"contains", "T-shirt blue", "shirt", true},
		{"does_not_contain", "T-shirt", "shirt", false},
	} {
		assert.Equal(t, c.want, filters[c.filter].holds(c.field, c.value), "%q %s %q", c.field, c.filter, c.value)
	}
}

// TestNoNumberSatisfiesNothing: what is not a number satisfies no numeric
// comparison, in neither place.
func TestNoNumberSatisfiesNothing(t *testing.T) {
	for _, text := range []string{"", " ", "abc", "NaN", "inf", "-Infinity", "0x10", "1_000", "1,5", "1e999", "--1", "1 2"} {
		for _, filter := range []string{"is_less_than", "is_less_equal", "is_greater_than", "is_greater_equal"} {
			assert.False(t, filters[filter].holds(text, "1"), "%q %s 1", text, filter)
			assert.False(t, filters[filter].holds("1", text), "1 %s %q", filter, text)
		}
	}
}

func TestTransforms(t *testing.T) {
	for _, c := range []struct{ transform, text, want string }{
		{"capitalize", "dark BLUE", "Dark BLUE"},
		{"capitalize", "éclair", "Éclair"},
		{"capitalize", "ǆ", "ǅ"}, // a letter with a title case of its own
		{"capitalize", "", ""},
		{"uppercase", "bleu foncé", "BLEU FONCÉ"},
		{"lowercase", "RED", "red"},
	} {
		assert.Equal(t, c.want, transforms[c.transform](c.text), "%s %q", c.transform, c.text)
	}
}
