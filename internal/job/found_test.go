package job

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
)

func TestFound(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":200,"total_tokens":210,"completion_tokens":10,"prompt_tokens_details":%s}`
	type found2 struct {
		share float64
		ok    bool
	}
	for text, want := range map[string]found2{
		`{"choices":[],` + fmt.Sprintf(usage, `{"cached_tokens":50}`) + `}`:                                   {0.25, true},
		`{"choices":[],` + fmt.Sprintf(usage, `{ "audio_tokens": 0, "cached_tokens" : 200 }`) + `,"kv":null}`: {1, true},
		"data: {\"choices\":[]," + fmt.Sprintf(usage, `{"cached_tokens":0}`) + "}\n\ndata: [DONE]\n\n":        {0, true},
		`{` + fmt.Sprintf(usage, `null`) + `}`:                                                                {},
		`{` + fmt.Sprintf(usage, `{"cached_tokens":201}`) + `}`:                                               {1.005, false},
		`{` + fmt.Sprintf(usage, `{"cached_tokens":-1}`) + `}`:                                                {},
		`{"usage":{"prompt_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}}`:                           {},
		`{"usage":{"prompt_tokens":10}}`:                                                                      {},
		`{"content":"say \"prompt_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":2}"}`:               {},
		`{"prompt_tokens_details":{"cached_tokens":1}}`:                                                       {},
		``: {},
	} {
		share, ok := found([]byte(text))
		assert.Equal(t, want.ok, ok, text)
		if ok {
			assert.InDelta(t, want.share, share, 1e-9, text)
		}
	}
}

// Of an answer in pieces of any size, its end is kept, for a job with a text alone.
func TestPieces(t *testing.T) {
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

func FuzzFound(f *testing.F) {
	f.Add([]byte(`"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":3`))
	f.Fuzz(func(t *testing.T, tail []byte) {
		if share, ok := found(tail); ok {
			assert.GreaterOrEqual(t, share, 0.0)
			assert.LessOrEqual(t, share, 1.0)
		}
	})
}
