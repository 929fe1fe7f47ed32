package intake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	var texts []string
	for n := range 300 {
		texts = append(texts, strings.Repeat("x", n))
	}
	texts = append(texts, "y", "x\x00", "\x00", "☃")
	for i, a := range texts {
		assert.Equal(t, a, NewText(a).String())
		assert.Equal(t, len(a), NewText(a).Len())
		for j, b := range texts {
			if (NewText(a) == NewText(b)) != (i == j) {
				t.Errorf("%q and %q", a, b)
			}
		}
	}
	assert.Equal(t, Text{}, NewText(""))
}
