package record

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTextsOfErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxText)
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"refused: \"ä\" 'b' 我", "refused: \"ä\" 'b' 我"},
		{"a\x00b\nc\xff\u2028\u200b", `a\x00b\nc\xff\u2028\u200b`},
		{long, long},
		{long + "x", long[3:] + "..."},
		{long[3:] + "我", long[3:] + "我"},
		{long[2:] + "我", long[3:] + "..."},
		{strings.Repeat("\xff", 1<<20), strings.Repeat(`\xff`, 127) + `\...`},
		{strings.Repeat("我", 1<<20), strings.Repeat("我", 169) + "..."},
	} {
		got := textOf(errors.New(c.text))
		assert.Equal(t, c.want, got)
		assert.LessOrEqual(t, len(got), maxText)
	}
	assert.Empty(t, textOf(nil))
}
