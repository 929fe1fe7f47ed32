package job

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
)

// The end of a response is kept for jobs whose project has blocks, however the response is
// split into pieces.
func TestTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		b := &Book{}
		b.Wrote([]byte("nothing"), 7)
		assert.Nil(t, b.tail)
		b.Record.Facts.Data = &intake.Parts{Set: true}
		b.Wrote([]byte("nothing"), 7)
		assert.Nil(t, b.tail)
		b.Record.Facts.Data = &intake.Parts{}
		var all []byte
		for range rng.IntN(6) {
			piece := bytes.Repeat([]byte(strings.Repeat(string(rune('a'+rng.IntN(26))), 7)), rng.IntN(300))
			all = append(all, piece...)
			b.Wrote(piece, len(piece))
		}
		require.Equal(t, string(all[max(0, len(all)-tailBytes):]), string(b.tail))
		assert.LessOrEqual(t, cap(b.tail), tailBytes)
		assert.EqualValues(t, 14+len(all), b.Record.Bytes)
	}
}
