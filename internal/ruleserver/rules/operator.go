package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Operator is one rule: items for which every condition holds get the actions,
// the others the else actions.
type Operator struct {
	Name       string
	Conditions []Condition
	Actions    []Action
	Else       []Action
}

// Operators is one of a job's two lists of operators, in order.
type Operators struct {
	List []Operator
	// Digest is equal for equal lists, and different for lists that could act
	// differently. White space and the order of members do not count; the
	// operators' names do.
	Digest string
}

type wireOperator struct {
	Name        string          `json:"name"`
	Condition   []wireCondition `json:"condition"`
	Actions     []wireAction    `json:"actions"`
	ElseActions []wireAction    `json:"else_actions"`
}

func parseOperators(path jsontext.Pointer, wires []wireOperator) (Operators, error) {
	operators := make([]Operator, len(wires))
	for i, wire := range wires {
		here := at(path, i)
		if len(wire.Actions)+len(wire.ElseActions) == 0 {
			return Operators{}, malformed(here+"/actions", "missing")
		}
		o := Operator{Name: wire.Name}
		var err error
		if o.Conditions, err = parseConditions(here+"/condition", wire.Condition, 1); err != nil {
			return Operators{}, err
		}
		if o.Actions, err = parseActions(here+"/actions", wire.Actions); err != nil {
			return Operators{}, err
		}
		if o.Else, err = parseActions(here+"/else_actions", wire.ElseActions); err != nil {
			return Operators{}, err
		}
		operators[i] = o
	}
	return Operators{List: operators, Digest: digest(wires)}, nil
}

func digest(wires []wireOperator) string {
	text, err := json.Marshal(wires, jsontext.ReorderRawObjects(true),
		// 0.10 and 0.1 are equal numbers and different texts.
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		panic("rules: operators that were read cannot be written: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// checkBounds refuses a job that has more of something than a job may have.
func (w *wireJob) checkBounds() error {
	operators := append(w.Shared[:len(w.Shared):len(w.Shared)], w.Channel...)
	var conditions, actions int
	for _, o := range operators {
		conditions += countConditions(o.Condition)
		actions += len(o.Actions) + len(o.ElseActions)
	}
	for _, count := range []struct {
		what   string
		n, max int
	}{
		{"operators", len(operators), MaxOperators},
		{"conditions", conditions, MaxConditions},
		{"actions", actions, MaxActions},
	} {
		if count.n > count.max {
			return malformed("", "%d %s, and a job may have %d", count.n, count.what, count.max)
		}
	}
	return nil
}

func countConditions(wires []wireCondition) int {
	n := len(wires)
	for _, wire := range wires {
		n += countConditions(wire.Children)
	}
	return n
}

// at is the path of an array's element.
func at(path jsontext.Pointer, i int) jsontext.Pointer {
	return path.AppendToken(strconv.Itoa(i))
}
