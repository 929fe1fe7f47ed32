package intake

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// row is one row of testdata/jobs.txt.
type row struct {
	line             int
	name, want, body string
}

// rows reads the table, whose head says what it looks like.
func rows(tb testing.TB) []row {
	table, err := os.ReadFile("testdata/jobs.txt")
	require.NoError(tb, err)
	var all []row
	for i, line := range strings.Split(strings.TrimSpace(string(table)), "\n") {
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
	return all
}

// pointers are where the members are in a body; "" is the default.
type pointers struct{ Project, Priority, Queue, Evaluate, Stream, Session string }

func newReader(tb testing.TB, p pointers) *Reader {
	r, err := NewReader(overDefault(p))
	require.NoError(tb, err)
	return r
}

func overDefault(p pointers) Settings {
	s := Default()
	for _, m := range []struct {
		to      *Place
		pointer string
	}{
		{&s.Project[0], p.Project}, {&s.Priority, p.Priority}, {&s.QueueTimeout, p.Queue},
		{&s.FirstByteTimeout, p.Evaluate}, {&s.StreamTimeout, p.Stream}, {&s.Session, p.Session},
	} {
		m.to.Pointer = cmp.Or(m.pointer, m.to.Pointer)
	}
	return s
}

// describe writes down every fact that is not its zero value, or the error.
func describe(f Facts, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if f.Project != "" {
		fmt.Fprintf(&b, "project=%q ", f.Project)
	}
	if f.Priority != selection.Low {
		fmt.Fprintf(&b, "priority=%v ", f.Priority)
	}
	if f.Prefetch {
		b.WriteString("prefetch ")
	}
	if f.Session != "" {
		fmt.Fprintf(&b, "session=%q ", f.Session)
	}
	if f.Bytes != 0 {
		fmt.Fprintf(&b, "bytes=%g ", f.Bytes)
	}
	if f.Queue != 0 {
		fmt.Fprintf(&b, "queue=%v ", f.Queue)
	}
	if f.Evaluate != 0 {
		fmt.Fprintf(&b, "evaluate=%v ", f.Evaluate)
	}
	if f.Stream != 0 {
		fmt.Fprintf(&b, "stream=%v ", f.Stream)
	}
	if b.Len() == 0 {
		return "-"
	}
	return strings.TrimSpace(b.String())
}

// Reader, oracle and table agree on each row.
func TestTable(t *testing.T) {
	r := newReader(t, pointers{})
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

// How much was read: what a policy and a queue need is the project and the priority.
func TestReadings(t *testing.T) {
	r, err := NewReader(Default())
	require.NoError(t, err)
	const unfinished = `"rules":[1,2,`
	for _, c := range []struct {
		body  string
		whole bool
		want  Reading
	}{
		{`{"project_id":7,"priority":"high"}`, true, Full},
		{`{"project_id":7}`, true, Full},
		{`{"priority":"high"}`, true, NoProject},
		{`{"project_id":null}`, true, NoProject},
		{`{"project_id":""}`, true, NoProject},
		{`{}`, true, NoProject},
		{`{"project_id":7,"priority":"high",` + unfinished, false, Full},
		{`{"priority":null,"project_id":7,` + unfinished, false, Full},
		{`{"priority":"high","project_id":"",` + unfinished, false, NoProject},
		{`{"project_id":7,` + unfinished, false, Partly}, // its priority may be high
		{`{"priority":"high",` + unfinished, false, Partly},
		{`{"priority":"high","project_id":7`, false, Partly}, // or 77
		{`{` + unfinished, false, Partly},
		{`{"project_id":7,` + unfinished, true, Unread},
		{`{"priority":"urgent"}`, true, Unread},
		{`[]`, true, Unread},
	} {
		_, got, err := r.read(Head{}, []byte(c.body), c.whole)
		assert.Equal(t, c.want, got, c.body)
		assert.Equal(t, c.want == Unread, err != nil, c.body)
	}
}
