package rules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// naive applies operators to one item as a map, without optimisation. It returns nil for an
// item that is removed.
func naive(item map[string]string, operators Operators) map[string]string {
	item = maps.Clone(item)
	value := func(values operands) (text string) {
		for _, v := range values {
			if v.Type == ofField {
				text += item[string(v.Text)]
			} else {
				text += string(v.Text)
			}
		}
		return text
	}
	var holds func(c Condition) bool
	holds = func(c Condition) bool {
		return filters[c.Filter].holds(item[c.Field], value(c.Value)) || slices.ContainsFunc(c.Children, holds)
	}
	for _, o := range operators {
		actions := o.Actions
		for _, c := range o.Conditions {
			if !holds(c) {
				actions = o.Otherwise
			}
		}
		for _, a := range actions {
			switch {
			case a.Field == allFields:
				return nil
			case a.Kind == actionTransform:
				item[a.Field] = transforms[string(a.Value[0].Text)](item[a.Field])
			default:
				item[a.Field] = value(a.Value)
			}
		}
	}
	return item
}

func TestApplyMatchesNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		feed, operators := randomFeed(rng), randomOperators(rng)
		before := fmt.Sprint(feed)

		got, _, err := Apply(feed, operators, Presentation{}, 1<<30)
		require.NoError(t, err)
		require.Equal(t, before, fmt.Sprint(feed), "seed %d: the input changed", seed)

		var want []map[string]string
		for _, item := range feed.items {
			if made := naive(asMap(feed.columns, item), operators); made != nil {
				want = append(want, made)
			}
		}
		require.Len(t, got.items, len(want), "seed %d", seed)
		for i, item := range got.items {
			fields := asMap(got.columns, item)
			for _, name := range fieldNames {
				require.Equal(t, want[i][name], fields[name], "seed %d, item %d, field %s", seed, i, name)
			}
		}
		// The input's columns remain, in order.
		require.Equal(t, feed.columns, slices.DeleteFunc(slices.Clone(got.columns), func(name string) bool {
			return !slices.Contains(feed.columns, name)
		}), "seed %d: columns", seed)
	}
}

var fieldNames = []string{"a", "b", "c", "d", "e"}

func asMap(columns []string, item row) map[string]string {
	fields := map[string]string{}
	for i, name := range columns {
		fields[name] = item[i]
	}
	return fields
}

func randomFeed(rng *rand.Rand) *Feed {
	feed := &Feed{columns: []string{"a", "b", "c"}}
	for range rng.IntN(6) {
		feed.items = append(feed.items, row{randomText(rng), randomText(rng), randomText(rng)})
	}
	return feed
}

func randomText(rng *rand.Rand) string {
	return []string{"", "0", "-1", "15.00", "15", "red", "Red", "x1"}[rng.IntN(8)]
}

func randomName(rng *rand.Rand) string { return fieldNames[rng.IntN(len(fieldNames))] }

func randomValues(rng *rand.Rand, n int) (values operands) {
	for range n {
		v := operand{Type: ofText, Text: scalar(randomText(rng))}
		if rng.IntN(2) == 0 {
			v = operand{Type: ofField, Text: scalar(randomName(rng))}
		}
		values = append(values, v)
	}
	return values
}

func randomConditions(rng *rand.Rand, depth int) (conditions []Condition) {
	known := slices.Sorted(maps.Keys(filters))
	for range rng.IntN(3) {
		name := known[rng.IntN(len(known))]
		c := Condition{Field: randomName(rng), Filter: name, Value: randomValues(rng, filters[name].values)}
		if depth < 3 {
			c.Children = randomConditions(rng, depth+1)
		}
		conditions = append(conditions, c)
	}
	return conditions
}

func randomActions(rng *rand.Rand) (actions []Action) {
	for range rng.IntN(3) {
		field := randomName(rng)
		actions = append(actions, []Action{
			{Field: field, Kind: actionRemove},
			{Field: allFields, Kind: actionRemove},
			{Field: field, Kind: actionSet, Value: randomValues(rng, 1)},
			{Field: field, Kind: actionCombine, Value: randomValues(rng, 3)},
			{Field: field, Kind: actionTransform, Value: operands{{Type: ofText, Text: "capitalize"}}},
		}[rng.IntN(5)])
	}
	return actions
}

func randomOperators(rng *rand.Rand) (operators Operators) {
	for range rng.IntN(4) {
		operators = append(operators, Operator{
			Conditions: randomConditions(rng, 0), Actions: randomActions(rng), Otherwise: randomActions(rng),
		})
	}
	return operators
}

// Each case names where a new column is inserted, or why none is.
func TestLayout(t *testing.T) {
	stock := []Condition{{Field: "stock", Filter: "is_empty"}}
	combine := func(field string, sources ...string) Action {
		a := Action{Field: field, Kind: actionCombine}
		for _, s := range sources {
			a.Value = append(a.Value, operand{Type: ofField, Text: scalar(s)})
		}
		return a
	}
	for name, c := range map[string]struct {
		operators Operators
		want      string
	}{
		"after the field of its condition":                    {Operators{{Conditions: stock, Actions: []Action{combine("new")}}}, "id title stock new price"},
		"after the field of the condition, by an else action": {Operators{{Conditions: stock, Otherwise: []Action{combine("new")}}}, "id title stock new price"},
		"after the last field of its value":                   {Operators{{Actions: []Action{combine("new", "title", "id")}}}, "id title new stock price"},
		"at the end without conditions and fields":            {Operators{{Actions: []Action{combine("new")}}}, "id title stock price new"},
		"several new columns in the order of their actions":   {Operators{{Conditions: stock, Actions: []Action{combine("n1"), combine("n2")}, Otherwise: []Action{combine("n3")}}}, "id title stock n1 n2 n3 price"},
		"before the columns of earlier operators":             {Operators{{Conditions: stock, Actions: []Action{combine("n1")}}, {Conditions: stock, Actions: []Action{combine("n2")}}}, "id title stock n2 n1 price"},
		"none if the column exists":                           {Operators{{Conditions: stock, Actions: []Action{combine("title")}}}, "id title stock price"},
		"none for a removal or a transform":                   {Operators{{Actions: []Action{{Field: "new", Kind: actionRemove}, {Field: "new", Kind: actionTransform}}}}, "id title stock price"},
		"at the end if the condition's field is unknown":      {Operators{{Conditions: []Condition{{Field: "nope", Filter: "is_empty"}}, Actions: []Action{combine("new")}}}, "id title stock price new"},
	} {
		got, err := layout([]string{"id", "title", "stock", "price"}, c.operators)
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.Join(got, " "), name)
	}
}

// TestApplyIsBounded: rules that repeatedly double a field end with an error before they use
// too much memory.
func TestApplyIsBounded(t *testing.T) {
	self := operand{Type: ofField, Text: "a"}
	double := Action{Field: "a", Kind: actionCombine, Value: operands{self, self}}
	feed := &Feed{columns: []string{"a"}, items: []row{{"xx"}}}
	_, _, err := Apply(feed, Operators{{Actions: slices.Repeat([]Action{double}, 100)}}, Presentation{}, 1<<20)
	require.EqualError(t, err, "the rules make a feed of more than 1048576 bytes")
	_, _, err = Apply(feed, Operators{{Actions: []Action{double}}}, Presentation{}, 20)
	require.NoError(t, err, "what fits exactly is allowed")
	_, _, err = Apply(feed, Operators{{Actions: []Action{double}}}, Presentation{}, 19)
	require.ErrorAs(t, err, new(*TooLarge))

	var wide []Action
	for i := range maxColumns {
		wide = append(wide, Action{Field: fmt.Sprint("n", i), Kind: actionSet, Value: operands{self}})
	}
	_, _, err = Apply(feed, Operators{{Actions: wide}}, Presentation{}, 1<<30)
	require.EqualError(t, err, "the rules make a feed of more than 1000 columns")

	// A removed item no longer counts in the bytes.
	many := &Feed{columns: []string{"a"}, items: slices.Repeat([]row{{"text"}}, 10)}
	out, _, err := Apply(many, Operators{{Actions: []Action{{Field: allFields, Kind: actionRemove}}}}, Presentation{}, 20)
	require.NoError(t, err)
	assert.Empty(t, out.items)
}
