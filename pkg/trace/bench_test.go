package trace

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

const sample = `{"offset":12.5,"project":12345,"priority":"low","kind":"process","version":3,"shared":"a1","channel":7,"load_s":1.9,"shared_s":0.4,"operators_s":0.8,"output_s":0.1,"bytes":52428800,"timeouts":{"queue":240,"evaluate":1800,"stream":3600},"submitter":17,"after":null}` + "\n"

func BenchmarkReader(b *testing.B) {
	text := bytes.Repeat([]byte(sample), 1000)
	b.SetBytes(int64(len(sample)))
	b.ReportAllocs()
	for i := 0; i < b.N; {
		r := NewReader(bytes.NewReader(text), "")
		for ; i < b.N; i++ {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	r := NewReader(bytes.NewReader([]byte(sample)), "")
	job, err := r.Next()
	if err != nil {
		b.Fatal(err)
	}
	w := NewWriter(io.Discard)
	b.SetBytes(int64(len(sample)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(&job); err != nil {
			b.Fatal(err)
		}
	}
}
