package intake

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

func FuzzRead(f *testing.F) {
	for _, row := range rows(f) {
		f.Add([]byte(row.body))
	}
	r := newReader(f, pointers{})
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		class := requireAgreement(t, r, body)
		require.Equal(t, before, body)

		want, _, _ := r.read(Head{}, body, true)
		head, _, err := r.read(Head{}, body, false)
		if class == "" {
			require.NoError(t, err)
			require.Equal(t, want, head, "a whole body is a head")
		}
		if err != nil {
			require.Equal(t, class, classOf(t, err), "a head is refused only for what a body is")
		}
	})
}

func FuzzNewReader(f *testing.F) {
	d := Default()
	f.Add(d.Project[0].Pointer, d.QueueTimeout.Pointer)
	f.Add("/a/b", "/a")
	f.Add("~1", "/~2")
	f.Fuzz(func(t *testing.T, project, queue string) {
		d.Project, d.QueueTimeout = Places{{Pointer: project}}, Place{Pointer: queue}
		r, err := NewReader(d)
		if err != nil {
			var f settings.Faults
			d.Check(&f)
			require.NotEmpty(t, f.All())
			return
		}
		_, _, err = r.read(Head{}, []byte(`{}`), true)
		require.NoError(t, err)
	})
}

// FuzzBody lets a script decide how bytes arrive and how attempts read them: each byte of it is a
// step. Whatever the order, the one attempt that reads sees the body from its beginning, with no gap.
func FuzzBody(f *testing.F) {
	f.Add([]byte("hello"), uint32(0), int64(5), []byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte("hello"), uint32(200_000), int64(-1), []byte{0, 0, 1, 9, 17, 2, 2, 0, 1})
	f.Add([]byte{}, uint32(0), int64(9), []byte{0, 3})
	f.Fuzz(func(t *testing.T, seed []byte, repeat uint32, declared int64, script []byte) {
		const limit = 256 << 10
		data := seed
		if len(seed) > 0 {
			data = bytes.Repeat(seed, 1+int(repeat%(300<<10))/len(seed))
		}
		declared = max(declared, -1)
		budget := NewBudget(100<<10, 16<<20)
		body, err := ReadBody(bytes.NewReader(data), declared, limit, budget)
		require.LessOrEqual(t, budget.Used(), int64(100<<10))
		if err != nil {
			require.True(t, errors.Is(err, ErrTooLarge) && (len(data) > limit || declared > limit) ||
				errors.Is(err, io.ErrUnexpectedEOF) && declared > int64(len(data)), "%v", err)
			require.Zero(t, budget.Used())
			return
		}
		require.Equal(t, data[:len(body.Bytes())], body.Bytes())
		if body.Whole() {
			require.LessOrEqual(t, declared, int64(len(data)), "a body that ends early is an error")
			script = nil
		}

		type reading struct {
			r    io.Reader
			seen int
		}
		var readings []*reading
		for _, step := range script {
			if step%4 == 0 {
				readings = append(readings, &reading{r: body.NewReader()})
			}
			if len(readings) == 0 {
				continue
			}
			a := readings[int(step/4)%len(readings)]
			p := make([]byte, 1+int(step)*997)
			n, err := a.r.Read(p)
			require.Equal(t, data[a.seen:a.seen+n], p[:n])
			a.seen += n
			switch {
			case err == io.EOF:
				assert.Equal(t, len(data), a.seen)
			case err != nil && len(data) <= limit && declared <= int64(len(data)):
				require.ErrorIs(t, err, ErrSpent)
			}
		}
		body.Release()
		body.Release()
		require.Zero(t, budget.Used())
	})
}
