package rules

import (
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// Condition holds for an item when its own filter does, or any of its children.
type Condition struct {
	Field    string
	Filter   string
	Value    Value          // unused by is_empty and is_not_empty
	Pattern  *regexp.Regexp // of matches and does_not_match
	Children []Condition
}

type wireCondition struct {
	Field    string          `json:"field"`
	Filter   string          `json:"filter"`
	Value    jsontext.Value  `json:"value"`
	Children []wireCondition `json:"children"`
}

// parseConditions reads a list of conditions and, below them, their children.
func parseConditions(path jsontext.Pointer, wires []wireCondition, depth int) ([]Condition, error) {
	if depth > MaxDepth && len(wires) > 0 {
		return nil, malformed(path, "conditions nested deeper than %d", MaxDepth)
	}
	conditions := make([]Condition, len(wires))
	for i, wire := range wires {
		here := at(path, i)
		condition, err := wire.parse(here)
		if err != nil {
			return nil, err
		}
		condition.Children, err = parseConditions(here+"/children", wire.Children, depth+1)
		if err != nil {
			return nil, err
		}
		conditions[i] = condition
	}
	return conditions, nil
}

func (w wireCondition) parse(path jsontext.Pointer) (c Condition, err error) {
	if w.Field == "" {
		return c, malformed(path+"/field", "missing")
	}
	c = Condition{Field: w.Field, Filter: w.Filter}
	switch w.Filter {
	case "":
		return c, malformed(path+"/filter", "missing")
	case "is_empty", "is_not_empty":
		if len(w.Value) > 0 {
			return c, malformed(path+"/value", "%s takes no value", w.Filter)
		}
		return c, nil
	case "matches", "does_not_match":
		c.Value, err = parseValue(path+"/value", w.Value)
		if err != nil {
			return c, err
		}
		if c.Value.Field != "" {
			return c, malformed(path+"/value", "%s takes a static pattern", w.Filter)
		}
		c.Pattern, err = regexp.Compile(c.Value.Static)
		if err != nil {
			return c, malformed(path+"/value", "not an RE2 pattern: %v", err)
		}
		return c, nil
	}
	if filters[w.Filter] == nil {
		return c, malformed(path+"/filter", "unknown filter %.40q; known are %s", w.Filter, filterNames())
	}
	c.Value, err = parseValue(path+"/value", w.Value)
	return c, err
}
