package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSortKeys bounds the number of sort keys.
const maxSortKeys = 16

// Presentation is how the result is sorted and filtered (the thesis, 3.1).
type Presentation struct {
	Sort   []SortKey `json:"sort_by"` // the most significant key first; the sort is stable
	Search string    `json:"search"`  // keep only items with a field that contains this text, case-insensitive
	Omit   []string  `json:"omit"`    // fields to remove from the result
}

// SortKey is a field to sort by. Numbers come before other texts and are compared numerically.
type SortKey struct {
	Field      string `json:"field"`
	Descending bool   `json:"descending"`
}

// UnmarshalJSONFrom reads the name of a field, or an object.
func (k *SortKey) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == jsontext.KindString {
		token, err := dec.ReadToken()
		k.Field = token.String()
		return err
	}
	type plain SortKey // has no methods
	if err := json.UnmarshalDecode(dec, (*plain)(k)); err != nil {
		return err
	}
	if k.Field == "" {
		return malformed(dec.StackPointer()+"/field", "missing")
	}
	return nil
}

// Present applies the presentation to a feed. It does not change f.
func (p Presentation) Present(f *Feed) *Feed {
	if len(p.Sort)+len(p.Omit) == 0 && p.Search == "" {
		return f
	}
	out := &Feed{items: make([]row, 0, len(f.items))}
	var shown []int
	for i, name := range f.columns {
		if !slices.Contains(p.Omit, name) {
			shown, out.columns = append(shown, i), append(out.columns, name)
		}
	}
	term := strings.ToLower(p.Search)
	for _, item := range p.sorted(f) {
		presented, found := make(row, len(shown)), term == ""
		for i, at := range shown {
			presented[i] = item[at]
			found = found || strings.Contains(strings.ToLower(item[at]), term)
		}
		if found {
			out.items = append(out.items, presented)
		}
	}
	return out
}

func (p Presentation) sorted(f *Feed) []row {
	items := slices.Clone(f.items)
	for _, key := range slices.Backward(p.Sort) { // stable sorts: the most significant key is the last
		at := slices.Index(f.columns, key.Field)
		if at < 0 {
			continue
		}
		slices.SortStableFunc(items, func(a, b row) int {
			if key.Descending {
				a, b = b, a
			}
			return compareTexts(a[at], b[at])
		})
	}
	return items
}

func compareTexts(a, b string) int {
	x, xok := number(a)
	y, yok := number(b)
	switch {
	case xok && yok:
		return cmp.Compare(x, y)
	case xok:
		return -1
	case yok:
		return 1
	}
	return strings.Compare(a, b)
}

// dropOmitted removes the actions that only change omitted fields that nothing reads: the
// other half of the optimisation phase of the thesis (3.3).
func (p Presentation) dropOmitted(operators Operators) (_ Operators, saved int) {
	if len(p.Omit) == 0 {
		return operators, 0
	}
	unread := setOf(p.Omit)
	for _, key := range p.Sort {
		delete(unread, key.Field)
	}
	kept := slices.Clone(operators)
	for i := len(kept) - 1; i >= 0; i-- { // backwards, because readers of a field come after its writers
		o := &kept[i]
		o.Actions, o.Otherwise = dropUnread(o.Actions, unread), dropUnread(o.Otherwise, unread)
		if len(o.Actions)+len(o.Otherwise) == 0 {
			saved++
			kept = slices.Delete(kept, i, i+1)
			continue
		}
		for _, name := range fieldsOf(o.Conditions) {
			delete(unread, name)
		}
	}
	return kept, saved
}

// dropUnread removes the actions on unread fields, and removes from unread the fields that the other actions read.
func dropUnread(actions []Action, unread map[string]bool) (kept []Action) {
	for _, a := range slices.Backward(actions) {
		if unread[a.Field] {
			continue
		}
		for _, name := range a.Value.fields() {
			delete(unread, name)
		}
		kept = append(kept, a)
	}
	slices.Reverse(kept)
	return kept
}

// Digest is a hash that is equal for presentations with the same effect.
func (p Presentation) Digest() string { return digest(p) }
