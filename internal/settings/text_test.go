package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"ten bytes.":                           "ten bytes.",
		"eleven byte.":                         "eleven ...",
		"\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc": "\u00fc\u00fc\u00fc...",
		strings.Repeat("x", 900_000):           "xxxxxxx...",
	} {
		assert.Equal(t, want, Cut(in, 10))
	}
}
