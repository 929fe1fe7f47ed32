package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Operators is one of a job's two lists of operators, in order.
type Operators []Operator

// Operator is one rule: items that meet every condition get the actions,
// all other items the else actions.
type Operator struct {
	Name       string      `json:"name"`
	Conditions []Condition `json:"condition"`
	Actions    []Action    `json:"actions"`
	Otherwise  []Action    `json:"else_actions"`
}

// Digest is a hash of a list. Lists that could have different effects have different digests. The
// formatting of the JSON text does not matter; the operators' names do.
func (o Operators) Digest() string { return digest(o) }

// digest hashes a part of a job.
func digest(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		panic("BUG: rules: what was read from a job cannot be written: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Condition is true for an item if its own filter or one of its children is true.
type Condition struct {
	Field    string      `json:"field"`
	Filter   string      `json:"filter"`
	Value    operands    `json:"value"`
	Children []Condition `json:"children"`
}

// UnmarshalJSONFrom reads and checks a condition.
func (c *Condition) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Condition // has no methods
	if err := json.UnmarshalDecode(dec, (*plain)(c)); err != nil {
		return err
	}
	path, filter := dec.StackPointer(), filters[c.Filter]
	switch {
	case c.Field == "":
		return malformed(path+"/field", "missing")
	case filter.holds == nil:
		return malformed(path+"/filter", "unknown filter %.40q; known are %s", c.Filter, names(filters))
	case len(c.Value) != filter.values:
		return malformed(path+"/value", "%s takes %d values, got %d", c.Filter, filter.values, len(c.Value))
	}
	return nil
}

// allFields is the field name with which the action remove removes the whole item
// from the feed.
const allFields = "all"

// Action changes one field of an item, or removes the item.
type Action struct {
	Field string   `json:"field"`
	Kind  string   `json:"action"`
	Value operands `json:"value"`
}

const (
	actionRemove    = "remove"        // removes the item if the field is allFields, otherwise the field's text
	actionSet       = "set"           // writes a value
	actionCombine   = "combine"       // concatenates several values
	actionTransform = "texttransform" // the value is the name of a transform
)

// UnmarshalJSONFrom reads and checks an action.
func (a *Action) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Action // has no methods
	if err := json.UnmarshalDecode(dec, (*plain)(a)); err != nil {
		return err
	}
	path := dec.StackPointer()
	switch {
	case a.Field == "":
		return malformed(path+"/field", "missing")
	case a.Field == allFields && a.Kind != actionRemove:
		return malformed(path+"/action", `only remove acts on the field "all"`)
	}
	want := 1
	switch a.Kind {
	case actionRemove:
		want = 0
	case actionSet:
	case actionCombine:
		want = max(len(a.Value), 1)
	case actionTransform:
		if len(a.Value) == 1 && transforms[string(a.Value[0].Text)] == nil {
			return malformed(path+"/value", "unknown transform %.40q; known are %s", a.Value[0].Text, names(transforms))
		}
	default:
		return malformed(path+"/action", "unknown action %.40q; known are combine, remove, set, texttransform", a.Kind)
	}
	if len(a.Value) != want {
		return malformed(path+"/value", "%s takes %d values, got %d", a.Kind, want, len(a.Value))
	}
	return nil
}

// creates reports whether the action adds the field to items without it.
func (a *Action) creates() bool { return a.Kind == actionSet || a.Kind == actionCombine }

func names[V any](known map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}
