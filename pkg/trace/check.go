package trace

import (
	"fmt"
	"strings"
)

// MaxSeconds bounds every time and every cost: some 31 years, so that sums of
// them stay within a time.Duration.
const MaxSeconds = 1e9

// MaxText bounds every name, in bytes.
const MaxText = 256

// fault is a field and what is wrong with it.
type fault struct {
	field  string
	reason string
}

// check returns the first fault of a job by itself.
func (j *Job) check() *fault {
	if j.Offset < 0 {
		return &fault{"offset", fmt.Sprintf("%v is before time zero", j.Offset)}
	}
	for _, s := range [...]struct {
		field string
		value float64
	}{
		{"offset", j.Offset},
		{"load_s", j.Load}, {"shared_s", j.SharedRules}, {"operators_s", j.Operators}, {"output_s", j.Output},
		{"timeouts/queue", j.Timeouts.Queue}, {"timeouts/evaluate", j.Timeouts.Evaluate}, {"timeouts/stream", j.Timeouts.Stream},
	} {
		if f := seconds(s.field, s.value); f != nil {
			return f
		}
	}
	for _, n := range [...]struct {
		field string
		value int64
	}{
		{"version", j.Version}, {"channel", j.Channel}, {"bytes", j.Bytes}, {"submitter", j.Submitter},
	} {
		if n.value < 0 {
			return &fault{n.field, fmt.Sprintf("%d is negative", n.value)}
		}
	}
	if len(j.Shared) > MaxText {
		return &fault{"shared", fmt.Sprintf("%d bytes are more than %d", len(j.Shared), MaxText)}
	}
	if j.Kind == Prefetch && j.SharedRules+j.Operators+j.Output > 0 {
		return &fault{"kind", "a prefetch has only load_s: it runs no rules"}
	}
	if j.Measured != nil {
		return j.Measured.check()
	}
	return nil
}

func (m *Measured) check() *fault {
	for _, s := range [...]struct {
		field string
		value *float64
	}{
		{"queue_s", m.Queued}, {"wait_s", m.Wait}, {"ttfb_s", m.TTFB}, {"ttlb_s", m.TTLB},
	} {
		if s.value == nil {
			continue
		}
		if f := seconds(s.field, *s.value); f != nil {
			return f
		}
	}
	if m.TTFB != nil && m.TTLB != nil && *m.TTLB < *m.TTFB {
		return &fault{"ttlb_s", fmt.Sprintf("%v is before ttfb_s, %v: the last byte before the first", *m.TTLB, *m.TTFB)}
	}
	if m.Outcome != "" && !word(m.Outcome) {
		return &fault{"outcome", notWord(m.Outcome)}
	}
	if m.Cache != "" && !word(m.Cache) {
		return &fault{"cache", notWord(m.Cache)}
	}
	if len(m.Upstream) > MaxText {
		return &fault{"upstream", fmt.Sprintf("%d bytes are more than %d", len(m.Upstream), MaxText)}
	}
	for i, a := range m.Attempts {
		if f := a.check(fmt.Sprintf("attempts/%d/", i)); f != nil {
			return f
		}
	}
	return nil
}

func (a *Attempt) check(path string) *fault {
	if f := seconds(path+"start_s", a.Start); f != nil {
		return f
	}
	if f := seconds(path+"end_s", a.End); f != nil {
		return f
	}
	switch {
	case a.End < a.Start:
		return &fault{path + "end_s", fmt.Sprintf("%v is before start_s, %v", a.End, a.Start)}
	case !word(a.Outcome):
		return &fault{path + "outcome", notWord(a.Outcome)}
	case a.Upstream == "" || len(a.Upstream) > MaxText:
		return &fault{path + "upstream", fmt.Sprintf("%d bytes are not between 1 and %d", len(a.Upstream), MaxText)}
	}
	return nil
}

// seconds finds fault with a time; NaN is one too.
func seconds(field string, v float64) *fault {
	switch {
	case v < 0:
		return &fault{field, fmt.Sprintf("%v s is negative", v)}
	case !(v <= MaxSeconds):
		return &fault{field, fmt.Sprintf("%v s is more than %v", v, float64(MaxSeconds))}
	}
	return nil
}

// word reports whether s is one lower-case word, fit for a label.
func word(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

func notWord(s string) string {
	return fmt.Sprintf("%.40q is not a word of lower-case letters and underscores", s)
}
