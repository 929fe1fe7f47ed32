package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// operator is one rule: items for which every condition holds get the actions,
// the others the else actions.
type operator struct {
	conditions []condition
	actions    []action
	otherwise  []action
}

// Operators is one of a job's two lists of operators, in order.
type Operators struct {
	list []operator
	// Digest is equal for equal lists, and differs when the lists could act
	// differently. White space and the order of members make no difference; the
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
	operators := make([]operator, len(wires))
	for i, wire := range wires {
		here := at(path, i)
		if len(wire.Actions)+len(wire.ElseActions) == 0 {
			return Operators{}, malformed(here+"/actions", "missing")
		}
		var (
			o   operator
			err error
		)
		if o.conditions, err = parseConditions(here+"/condition", wire.Condition, 1); err != nil {
			return Operators{}, err
		}
		if o.actions, err = parseActions(here+"/actions", wire.Actions); err != nil {
			return Operators{}, err
		}
		if o.otherwise, err = parseActions(here+"/else_actions", wire.ElseActions); err != nil {
			return Operators{}, err
		}
		operators[i] = o
	}
	return Operators{list: operators, Digest: digest(wires)}, nil
}

func digest(wires []wireOperator) string {
	text, err := json.Marshal(wires, jsontext.ReorderRawObjects(true),
		// A feed is text, in which 0.10 and 0.1 differ.
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		panic("BUG: rules: operators that were read cannot be written: " + err.Error())
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
		{"operators", len(operators), maxOperators},
		{"conditions", conditions, maxConditions},
		{"actions", actions, maxActions},
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
