package intake

import (
	"bytes"
	"fmt"
	"net/http"
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
}{{"200B", 200}, {"1KB", 1 << 10}, {"4KB", 4 << 10}, {"64KB", 64 << 10}, {"1MB", 1 << 20}}

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

// rulesOf returns a job of about size bytes like those of `make bench`.
func rulesOf(size int, rule string) []byte {
	const begin, end = `{"input":"s3://feeds/in.csv","rules":[`, `{}],"priority":"low","project_id":17}`
	return []byte(begin + strings.Repeat(rule, max(0, size-len(begin)-len(end))/len(rule)) + end)
}

func BenchmarkDescribe(b *testing.B) {
	r := newReader(b, pointers{})
	h := Head{Method: "POST", Path: "/jobs", Header: http.Header{"Content-Type": {"application/json"}}}
	for _, rule := range []struct{ name, text string }{
		{"short", `{"field":"title","action":"replace","value":"x","with":"y"},`},
		{"long", `{"text":"` + strings.Repeat("All work and no play makes Jack a dull boy. ", 40) + `"},`},
		{"escapes", `{"text":"` + strings.Repeat(`Die Bücher \"sind\" größer.\nÄpfel,\u00fc `, 4) + `"},`},
		{"chinese", `{"text":"` + strings.Repeat("我们的生活", 20) + `","n":"价格"},`},
		{"numbers", `[0.12345678,-1.5e-05,12,-3,100000,0.25],`},
		{"literals", `{"a":true,"b":null,"c":[],"d":{},"e":[1,false]},`},
		{"indented", "{\n    \"field\": \"title\",\n    \"action\": \"replace\",\n    \"value\": \"x\"\n  },\n  "},
	} {
		for _, size := range sizes {
			body := rulesOf(size.bytes, rule.text)
			b.Run(rule.name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if d, err := r.Describe(h, body, true); err != nil || d.Facts.Key == 0 {
						b.Fatal(d, err)
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
