package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCachedShare(t *testing.T) {
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
		share, ok := CachedShare([]byte(text))
		assert.Equal(t, want.ok, ok, text)
		if ok {
			assert.InDelta(t, want.share, share, 1e-9, text)
		}
	}
}

func FuzzCachedShare(f *testing.F) {
	f.Add([]byte(`"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":3`))
	f.Fuzz(func(t *testing.T, tail []byte) {
		if share, ok := CachedShare(tail); ok {
			assert.GreaterOrEqual(t, share, 0.0)
			assert.LessOrEqual(t, share, 1.0)
		}
	})
}
