package rules

import (
	"math"
	"strconv"
	"strings"
)

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
