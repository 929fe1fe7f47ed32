package rules

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestApplyMatchesNaive checks the results of optimised rules. This test checks what is
// removed.
func TestOptimise(t *testing.T) {
	text := func(s string) operand { return operand{ofText, scalar(s)} }
	set := func(field string, value operand) []Action {
		return []Action{{Field: field, Kind: actionSet, Value: operands{value}}}
	}
	is := func(field, filter string, values ...operand) Condition {
		return Condition{Field: field, Filter: filter, Value: values}
	}
	or := func(c Condition, children ...Condition) Condition { c.Children = children; return c }
	a := set("new", text("x"))
	for name, c := range map[string]struct {
		from, to Operators
		saved    Saved
	}{
		"a field that no item has": {
			Operators{{Conditions: []Condition{is("none", "is_not_empty")}, Actions: a}}, nil, Saved{1, 1},
		},
		"a condition that always holds": {
			Operators{{Conditions: []Condition{is("none", "is_empty"), is("a", "is_empty")}, Actions: a}},
			Operators{{Conditions: []Condition{is("a", "is_empty")}, Actions: a}}, Saved{0, 1},
		},
		"an else branch that always applies": {
			Operators{{Conditions: []Condition{is("none", "contains", text("y"))}, Actions: set("a", text("1")), Otherwise: a}},
			Operators{{Actions: a}}, Saved{0, 1},
		},
		"a constant that was set": {
			Operators{{Actions: a}, {Conditions: []Condition{is("a", "is_equal", operand{ofField, "new"})}, Actions: set("b", text("1"))},
				{Conditions: []Condition{is("new", "is_equal", text("y"))}, Actions: set("b", text("2"))}},
			Operators{{Actions: a}, {Conditions: []Condition{is("a", "is_equal", text("x"))}, Actions: set("b", text("1"))}}, Saved{1, 1},
		},
		"constants that are combined and transformed": {
			Operators{{Actions: []Action{
				{Field: "new", Kind: actionCombine, Value: operands{text("x"), text("y")}},
				{Field: "new", Kind: actionTransform, Value: operands{text("uppercase")}},
			}}},
			Operators{{Actions: append(set("new", text("xy")), set("new", text("XY"))...)}}, Saved{},
		},
		"conditions that exclude each other": {
			Operators{{Conditions: []Condition{is("a", "is_empty"), is("a", "is_greater_than", text("5"))}, Actions: a}}, nil, Saved{1, 2},
		},
		"children": {
			Operators{{Conditions: []Condition{or(is("none", "is_not_empty"), is("a", "is_empty"), is("none", "is_not_empty"), is("b", "is_empty"))}, Actions: a}},
			Operators{{Conditions: []Condition{or(is("a", "is_empty"), is("b", "is_empty"))}, Actions: a}}, Saved{0, 2},
		},
		"rules behind the removal of all items": {
			Operators{{Actions: []Action{{Field: allFields, Kind: actionRemove}}}, {Actions: a}},
			Operators{{Actions: []Action{{Field: allFields, Kind: actionRemove}}}}, Saved{1, 0},
		},
		"what only some items have set": {
			Operators{{Conditions: []Condition{is("a", "is_empty")}, Actions: a}, {Conditions: []Condition{is("new", "is_empty")}, Actions: set("b", text("1"))}},
			Operators{{Conditions: []Condition{is("a", "is_empty")}, Actions: a}, {Conditions: []Condition{is("new", "is_empty")}, Actions: set("b", text("1"))}}, Saved{},
		},
	} {
		got, saved := optimise(c.from, []string{"a", "b"}, []string{"a", "b", "new"})
		assert.Equal(t, c.to, got, name)
		assert.Equal(t, c.saved, saved, name)
	}
}

// Optimised operators exceed the limit of a result's bytes for exactly the same items as the original ones, and keep or
// remove the same items. Optimising operators again changes nothing.
func TestOptimiseKeepsTheBound(t *testing.T) {
	removed := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		feed, operators := randomFeed(rng), randomOperators(rng)
		columns, err := layout(feed.columns, operators)
		require.NoError(t, err)
		less, saved := optimise(operators, feed.columns, columns)
		removed += saved.Operators + saved.Conditions
		again, twice := optimise(less, feed.columns, columns)
		require.Equal(t, less, again, "seed %d: optimised again", seed)
		require.Zero(t, twice, "seed %d: saved by optimising again", seed)

		limit := rng.Int64N(60)
		for _, item := range feed.items {
			results := [2]string{}
			for i, list := range []Operators{operators, less} {
				e := evaluation{column: map[string]int{}, limit: limit, left: limit}
				for i, name := range columns {
					e.column[name] = i
				}
				wide := make(row, len(columns))
				for i, name := range feed.columns {
					wide[e.column[name]] = item[i]
				}
				if stays, err := e.item(wide, list); err != nil {
					results[i] = err.Error()
				} else if stays {
					results[i] = "stays"
				}
			}
			require.Equal(t, results[0], results[1], "seed %d, item %v, limit %d", seed, item, limit)
		}
	}
	assert.Greater(t, removed, 1000, "random rules have something to remove")
}
