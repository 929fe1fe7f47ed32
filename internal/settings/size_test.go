package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "17": 17, "3KiB": 3 << 10, "64MiB": 64 << 20, "2 GiB": 2 << 30, "9B": 9} {
		var got, again Size
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, got, text)
		require.NoError(t, again.UnmarshalText([]byte(got.String())))
		assert.Equal(t, got, again)
	}
	for want, size := range map[string]Size{"0": 0, "17": 17, "3KiB": 3 << 10, "1025": 1<<10 + 1, "1MiB": 1 << 20, "2GiB": 2 << 30} {
		assert.Equal(t, want, size.String())
	}
	for _, text := range []string{"", "-1", "64MB", "1.5MiB", "KiB", "9999999999GiB"} {
		assert.Error(t, new(Size).UnmarshalText([]byte(text)), text)
	}
}
