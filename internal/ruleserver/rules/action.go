package rules

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// allFields is the field name by which the action remove takes a whole item
// out of the feed.
const allFields = "all"

// action changes one field of an item, or removes the item.
type action struct {
	field     string
	kind      actionKind
	values    []operand // what set, combine, append and prepend write; in order
	transform func(string) string
	search    string // what replace looks for
}

// actionKind is the action's name in a request.
type actionKind string

const (
	actionRemove    actionKind = "remove" // the item when the field is allFields, else the field's value
	actionClear     actionKind = "clear"  // the field's value
	actionSet       actionKind = "set"
	actionCopy      actionKind = "copy" // value is the name of the field to copy from
	actionCombine   actionKind = "combine"
	actionAppend    actionKind = "append"
	actionPrepend   actionKind = "prepend"
	actionReplace   actionKind = "replace" // every occurrence of search by value
	actionTransform actionKind = "texttransform"
)

type wireAction struct {
	Field  string         `json:"field"`
	Action string         `json:"action"`
	Value  jsontext.Value `json:"value"`
	Search string         `json:"search"`
}

func parseActions(path jsontext.Pointer, wires []wireAction) ([]action, error) {
	actions := make([]action, len(wires))
	for i, wire := range wires {
		var err error
		if actions[i], err = wire.parse(at(path, i)); err != nil {
			return nil, err
		}
	}
	return actions, nil
}

func (w wireAction) parse(path jsontext.Pointer) (action, error) {
	a := action{field: w.Field, kind: actionKind(w.Action), search: w.Search}
	switch {
	case a.field == "":
		return a, malformed(path+"/field", "missing")
	case a.kind == "":
		return a, malformed(path+"/action", "missing")
	case a.field == allFields && a.kind != actionRemove:
		return a, malformed(path+"/action", `only remove acts on the field "all"`)
	case a.search != "" && a.kind != actionReplace:
		return a, malformed(path+"/search", "only replace searches")
	}
	valuePath := path + "/value"
	switch a.kind {
	case actionRemove, actionClear:
		if len(w.Value) > 0 {
			return a, malformed(valuePath, "%s takes no value", a.kind)
		}
		return a, nil
	case actionReplace:
		if a.search == "" {
			return a, malformed(path+"/search", "missing")
		}
		return a.withValue(valuePath, w.Value)
	case actionSet, actionAppend, actionPrepend:
		return a.withValue(valuePath, w.Value)
	case actionCopy:
		name, err := parseScalar(valuePath, w.Value)
		if err == nil && name == "" {
			err = malformed(valuePath, "want the name of a field")
		}
		a.values = []operand{{field: name}}
		return a, err
	case actionCombine:
		var err error
		a.values, err = parseOperands(valuePath, w.Value)
		return a, err
	case actionTransform:
		name, err := parseScalar(valuePath, w.Value)
		if a.transform = transforms[name]; err == nil && a.transform == nil {
			err = malformed(valuePath, "unknown transform %.40q; known are %s", name,
				strings.Join(slices.Sorted(maps.Keys(transforms)), ", "))
		}
		return a, err
	}
	return a, malformed(path+"/action",
		"unknown action %.40q; known are append, clear, combine, copy, prepend, remove, replace, set, texttransform", w.Action)
}

// withValue reads the one value of an action. Append and prepend combine it with
// the text that the field has.
func (a action) withValue(path jsontext.Pointer, raw jsontext.Value) (action, error) {
	value, err := parseOperand(path, raw)
	switch a.kind {
	case actionAppend:
		a.values = []operand{{field: a.field}, value}
	case actionPrepend:
		a.values = []operand{value, {field: a.field}}
	default:
		a.values = []operand{value}
	}
	return a, err
}

// transforms are the functions that the action texttransform can name.
var transforms = map[string]func(string) string{
	"capitalize": capitalize,
	"uppercase":  strings.ToUpper,
	"lowercase":  strings.ToLower,
	"trim":       strings.TrimSpace,
}

// capitalize makes the first letter upper case and leaves the rest.
func capitalize(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if upper := unicode.ToTitle(first); upper != first {
		return string(upper) + text[size:]
	}
	return text
}
