package intake

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
)

// Two jobs share as many parts as their texts have full blocks in common, for one model, whatever stands
// around the text; the first part is the project.
func TestChainsPartWhereTextsDo(t *testing.T) {
	s := Default()
	s.Project = Places{{Pointer: "/model"}, {Pointer: "/prompt", Blocks: 10}}
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() (model, prompt string) {
		b := make([]byte, rng.IntN(60))
		for i := range b {
			b[i] = "ab"[rng.IntN(12)/11]
		}
		return string("mn"[rng.IntN(2)]), string(b)
	}
	read := func(model, prompt string) Facts {
		d, err := described(t, s, Head{Method: "POST"}, fmt.Sprintf(`{"x":[1],"prompt":%q,"model":%q}`, prompt, model))
		require.NoError(t, err)
		return d.Facts
	}
	for range 3000 {
		model, prompt := text()
		other, second := text()
		a, b := read(model, prompt), read(other, second)
		if prompt == "" || second == "" {
			continue
		}
		n := max(1, len(prompt)/10)
		require.Len(t, a.Data.Parts, n)
		require.False(t, a.Data.Set)
		require.Equal(t, a.Key, a.Data.Parts[0].Key)
		for i, part := range a.Data.Parts {
			require.InDelta(t, min(len(prompt), 10), part.Bytes, 0)
			end := min(10*(i+1), len(prompt))
			shared := model == other && i < len(b.Data.Parts) && strings.HasPrefix(second, prompt[:end]) &&
				(end == 10*(i+1) || prompt == second)
			require.Equal(t, shared, i < len(b.Data.Parts) && part.Key == b.Data.Parts[i].Key, "%q and %q, block %d", prompt, second, i)
		}
	}
	long := read("m", strings.Repeat("x", 10*MaxParts+500))
	assert.Len(t, long.Data.Parts, MaxParts)
}

// The values are fixed for good: sidecars of different versions must agree.
func TestBlocksAreFixed(t *testing.T) {
	chain := blocks(nil, []byte("You are a pirate. Answer briefly."), 16)
	require.Len(t, chain, 2)
	assert.Equal(t, []uint64{hash.Block(0, []byte("You are a pirate")), hash.Block(chain[0].Key, []byte(". Answer briefly"))}, []uint64{chain[0].Key, chain[1].Key})
	p := seal(chain, 5)
	assert.Equal(t, uint64(5), p.Parts[0].Key)
	assert.Equal(t, hash.Pair(5, hash.Block(hash.Block(0, []byte("You are a pirate")), []byte(". Answer briefly"))), p.Parts[1].Key)
}

// An array names several projects, whose order means nothing.
func TestSeveralProjects(t *testing.T) {
	s := Default()
	s.Project = Places{{Pointer: "/sets"}}
	read := func(body string) (Facts, error) {
		d, err := described(t, s, Head{Method: "POST"}, body)
		return d.Facts, err
	}
	keys := func(f Facts) map[uint64]bool {
		all := map[uint64]bool{}
		for _, part := range f.Data.Parts {
			all[part.Key] = true
		}
		return all
	}
	f, err := read(`{"sets":["b",7,"a","7",""]}`)
	require.NoError(t, err)
	assert.Equal(t, "7+a+b", f.Project)
	assert.Equal(t, Key("7+a+b"), f.Key)
	assert.True(t, f.Data.Set)
	assert.Equal(t, map[uint64]bool{Key("7"): true, Key("a"): true, Key("b"): true}, keys(f))
	for body, name := range map[string]string{`{"sets":["a"]}`: "a", `{"sets":"a"}`: "a", `{"sets":[]}`: "", `{"sets":null}`: ""} {
		f, err := read(body)
		require.NoError(t, err)
		assert.Equal(t, name, f.Project, body)
		assert.Nil(t, f.Data, body)
	}
	var many []string
	for i := range maxSeveral + 1 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprintf("data-set-%d", i)))
	}
	f, err = read(`{"sets":[` + strings.Join(many[1:], ",") + `]}`)
	require.NoError(t, err)
	assert.Regexp(t, `^[0-9a-f]{16}$`, f.Project, "a long name is hashed")
	for body, want := range map[string]string{
		`{"sets":[1,{}]}`: "has an element that must be an integer or a string, not an object",
		`{"sets":[1.5]}`:  "has an element that must be an integer or a string, not 1.5",
		`{"sets":[` + strings.Join(many, ",") + `]}`: "has more than 64 elements",
	} {
		_, err := read(body)
		assert.ErrorContains(t, err, want, body)
	}
	s.Project = Places{{Pointer: "/project_id"}, {Pointer: "/imports"}}
	f, err = read(`{"imports":[2,3],"project_id":1}`)
	require.NoError(t, err)
	assert.Equal(t, "1", f.Project, "imports are beside the project")
	assert.Equal(t, map[uint64]bool{Key("1"): true, Key("2"): true, Key("3"): true}, keys(f))
	s.Project = Places{{Pointer: "/text", Blocks: 8}, {Pointer: "/imports"}}
	_, err = read(`{"imports":[2,3],"text":"abc"}`)
	assert.EqualError(t, err, "the project has both blocks and an array of several projects")
}

// BenchmarkText reads a chat of 48 KiB: whose project is a member that stands after it, and is the chat itself.
func BenchmarkText(b *testing.B) {
	body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("Answer briefly. ", 3<<10) + `"}],"project_id":"7"}`)
	for name, place := range map[string]Place{"key": {Pointer: "/project_id"}, "text": {Pointer: "/messages", Blocks: 2 << 10}} {
		b.Run(name, func(b *testing.B) {
			s := Default()
			s.Project = Places{place}
			r, err := NewReader(s)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Describe(Head{Method: "POST"}, body, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
