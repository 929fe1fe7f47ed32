package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// AllFields is the field name by which the action remove takes a whole item
// out of the feed.
const AllFields = "all"

// Action changes one field of an item, or removes the item.
type Action struct {
	Field     string
	Kind      ActionKind
	Values    []Value // what set, combine, append and prepend write; in order
	Transform func(string) string
	Search    string // what replace looks for
}

// ActionKind is the action's name in a request.
type ActionKind string

const (
	Remove        ActionKind = "remove" // the item when the field is AllFields, else the field's value
	Clear         ActionKind = "clear"  // the field's value
	Set           ActionKind = "set"
	Copy          ActionKind = "copy" // value is the name of the field to copy from
	Combine       ActionKind = "combine"
	Append        ActionKind = "append"
	Prepend       ActionKind = "prepend"
	Replace       ActionKind = "replace" // every occurrence of search by value
	TextTransform ActionKind = "texttransform"
)

type wireAction struct {
	Field  string         `json:"field"`
	Action string         `json:"action"`
	Value  jsontext.Value `json:"value"`
	Search string         `json:"search"`
}

func parseActions(path jsontext.Pointer, wires []wireAction) ([]Action, error) {
	actions := make([]Action, len(wires))
	for i, wire := range wires {
		action, err := wire.parse(at(path, i))
		if err != nil {
			return nil, err
		}
		actions[i] = action
	}
	return actions, nil
}

func (w wireAction) parse(path jsontext.Pointer) (Action, error) {
	a := Action{Field: w.Field, Kind: ActionKind(w.Action), Search: w.Search}
	switch {
	case a.Field == "":
		return a, malformed(path+"/field", "missing")
	case a.Kind == "":
		return a, malformed(path+"/action", "missing")
	case a.Field == AllFields && a.Kind != Remove:
		return a, malformed(path+"/action", `only remove acts on the field "all"`)
	case a.Search != "" && a.Kind != Replace:
		return a, malformed(path+"/search", "only replace searches")
	}
	valuePath := path + "/value"
	switch a.Kind {
	case Remove, Clear:
		if len(w.Value) > 0 {
			return a, malformed(valuePath, "%s takes no value", a.Kind)
		}
		return a, nil
	case Replace:
		if a.Search == "" {
			return a, malformed(path+"/search", "missing")
		}
		return a.withValue(valuePath, w.Value)
	case Set, Append, Prepend:
		return a.withValue(valuePath, w.Value)
	case Copy:
		name, err := parseScalar(valuePath, w.Value)
		if err == nil && name == "" {
			err = malformed(valuePath, "want the name of a field")
		}
		a.Values = []Value{{Field: name}}
		return a, err
	case Combine:
		var err error
		a.Values, err = parseValues(valuePath, w.Value)
		return a, err
	case TextTransform:
		name, err := parseScalar(valuePath, w.Value)
		if a.Transform = transforms[name]; err == nil && a.Transform == nil {
			err = malformed(valuePath, "unknown transform %.40q; known are %s", name,
				strings.Join(slices.Sorted(maps.Keys(transforms)), ", "))
		}
		return a, err
	}
	return a, malformed(path+"/action",
		"unknown action %.40q; known are append, clear, combine, copy, prepend, remove, replace, set, texttransform", w.Action)
}

// withValue reads the one value that the action writes, and puts it where the
// action writes it: append and prepend combine it with the field itself.
func (a Action) withValue(path jsontext.Pointer, raw jsontext.Value) (Action, error) {
	value, err := parseValue(path, raw)
	switch a.Kind {
	case Append:
		a.Values = []Value{{Field: a.Field}, value}
	case Prepend:
		a.Values = []Value{value, {Field: a.Field}}
	default:
		a.Values = []Value{value}
	}
	return a, err
}
