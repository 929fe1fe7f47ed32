package intake

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

// row is one row of a table in testdata.
type row struct {
	line             int
	name, want, body string
}

// rows reads the table of jobs.
func rows(tb testing.TB) []row { return table(tb, "testdata/jobs.txt") }

// table reads a table, whose head says what it looks like.
func table(tb testing.TB, path string) []row {
	text, err := os.ReadFile(path)
	require.NoError(tb, err)
	var all []row
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, " | ", 3)
		require.Len(tb, parts, 3, "line %d", i+1)
		body := parts[2]
		if quoted, ok := strings.CutPrefix(body, "go:"); ok {
			body, err = strconv.Unquote(quoted)
			require.NoError(tb, err, "line %d", i+1)
		}
		all = append(all, row{line: i + 1, name: parts[0], want: parts[1], body: body})
	}
	require.NotEmpty(tb, all, path)
	return all
}

// newReader returns a reader of members at the default places.
func newReader(tb testing.TB) *Reader {
	r, err := NewReader(Default())
	require.NoError(tb, err)
	return r
}

// describe writes down every fact that is not its zero value, or the error.
func describe(f Facts, err error) string {
	if err != nil {
		return err.Error()
	}
	var known []string
	add := func(given bool, format string, value ...any) {
		if given {
			known = append(known, fmt.Sprintf(format, value...))
		}
	}
	add(f.Project != "", "project=%q", f.Project)
	add(f.Priority != selection.Low, "priority=%v", f.Priority)
	add(f.Prefetch, "prefetch")
	add(f.Session != "", "session=%q", f.Session)
	add(f.Bytes != 0, "bytes=%g", f.Bytes)
	add(f.Queue != 0, "queue=%v", f.Queue)
	add(f.Evaluate != 0, "evaluate=%v", f.Evaluate)
	add(f.Stream != 0, "stream=%v", f.Stream)
	return cmp.Or(strings.Join(known, " "), "-")
}

// Reader, oracle and table agree on each row.
func TestTable(t *testing.T) {
	r := newReader(t)
	names := map[string]bool{}
	for _, row := range rows(t) {
		assert.False(t, names[row.name], "line %d: %s occurs twice", row.line, row.name)
		names[row.name] = true
		t.Run(row.name, func(t *testing.T) {
			want, ok := map[string]string{"y_": "", "n_": "syntax", "f_": "field"}[row.name[:2]]
			assert.True(t, ok, "jobs.txt:%d: a name starts with y_, n_ or f_", row.line)
			assert.Equal(t, want, requireAgreement(t, r, []byte(row.body)), "jobs.txt:%d", row.line)
			facts, _, err := r.read(Head{}, []byte(row.body), true)
			assert.Equal(t, row.want, describe(facts, err), "jobs.txt:%d", row.line)
			assert.Equal(t, Key(facts.Project), facts.Key)
		})
	}
}

func TestID(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	const parent = "00-" + trace + "-00f067aa0ba902b7-01"
	for _, c := range []struct{ requestID, traceparent, want string }{
		{"", "", ""},
		{"job-1", "", "job-1"},
		{"job-1", parent, "job-1"},
		{"", parent, trace},
		{"", "01-" + trace + "-00f067aa0ba902b7-01-more", trace}, // of a later version
		{"has space", parent, trace},
		{"line\nbreak", "", ""},
		{"é", "", ""},
		{strings.Repeat("x", maxID), "", strings.Repeat("x", maxID)},
		{strings.Repeat("x", maxID+1), parent, trace},
		{"", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", ""},
		{"", "00-" + strings.ToUpper(trace) + "-00f067aa0ba902b7-01", ""},
		{"", "00-" + strings.Repeat("g", 32) + "-00f067aa0ba902b7-01", ""},
		{"", "ff-" + trace + "-00f067aa0ba902b7-01", ""},
		{"", "00-" + trace, ""},
		{"", "00-" + trace[1:] + "-00f067aa0ba902b7-01", ""},
	} {
		got := ID(c.requestID, c.traceparent)
		if c.want == "" {
			assert.Regexp(t, "^[A-Z2-7]{26}$", got, "%q %q: a new one", c.requestID, c.traceparent)
			assert.NotEqual(t, got, ID(c.requestID, c.traceparent))
			continue
		}
		assert.Equal(t, c.want, got, "%q %q", c.requestID, c.traceparent)
	}
}

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

// Several projects beside one project are further data that its jobs need. The table has arrays alone.
func TestSeveralProjectsBesideOne(t *testing.T) {
	s := Default()
	s.Project = Places{{Pointer: "/project_id"}, {Pointer: "/imports"}}
	d, err := described(t, s, Head{Method: "POST"}, `{"imports":[2,3],"project_id":1}`)
	require.NoError(t, err)
	assert.Equal(t, "1", d.Facts.Project)
	assert.Equal(t, &Parts{Set: true, Parts: []Part{{Key: Key("2")}, {Key: Key("3")}, {Key: Key("1")}}}, d.Facts.Data)
	s.Project[0] = Place{Pointer: "/text", Blocks: 8}
	_, err = described(t, s, Head{Method: "POST"}, `{"imports":[2,3],"text":"abc"}`)
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
