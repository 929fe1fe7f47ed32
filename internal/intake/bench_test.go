package intake

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const (
	wantedMembers = `"session_id":"5531f48d-74f0-4b52-8203-470d5ed8aa90","project_id":12345,"priority":"high",` +
		`"timeouts":{"queue_seconds":15,"evaluate_seconds":120,"stream_seconds":300}`
	operator = `{"name": "Set availability", "condition": [{"field": "stock", "filter": "is_greater_than", "value": {"type": "static", "value": 0}}], ` +
		`"actions": [{"field": "availability", "action": "set", "value": "in stock"}]}`
)

// jobOf returns a job of about size bytes with the wanted members at one end.
func jobOf(size int, first bool) []byte {
	operators := max(1, (size-len(wantedMembers))/len(operator))
	rules := `"operators":[` + strings.Repeat(operator+", ", operators-1) + operator + "]"
	if first {
		return []byte("{" + wantedMembers + "," + rules + "}")
	}
	return []byte("{" + rules + "," + wantedMembers + "}")
}

var sizes = []struct {
	name  string
	bytes int
}{{"1KB", 1 << 10}, {"4KB", 4 << 10}, {"64KB", 64 << 10}, {"1MB", 1 << 20}}

func BenchmarkRead(b *testing.B) {
	r := newReader(b, pointers{})
	for _, size := range sizes {
		for _, first := range []bool{true, false} {
			where := map[bool]string{true: "first", false: "last"}[first]
			b.Run(fmt.Sprintf("%s/%s", size.name, where), func(b *testing.B) {
				body := jobOf(size.bytes, first)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if facts, _, err := r.read(Head{}, body, true); err != nil || facts.Stream == 0 {
						b.Fatal(facts, err)
					}
				}
			})
		}
	}
}

func BenchmarkReadBody(b *testing.B) {
	budget := NewBudget(1 << 30)
	for _, size := range sizes {
		for _, declared := range []bool{true, false} {
			how := map[bool]string{true: "length", false: "chunked"}[declared]
			b.Run(fmt.Sprintf("%s/%s", size.name, how), func(b *testing.B) {
				data := jobOf(size.bytes, true)
				n := int64(-1)
				if declared {
					n = int64(len(data))
				}
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					body, err := ReadBody(bytes.NewReader(data), n, 64<<20, budget)
					if err != nil {
						b.Fatal(err)
					}
					body.Release()
				}
			})
		}
	}
}
