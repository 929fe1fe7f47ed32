package rules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// naive applies operators to one item as a map, in the plainest way. It gives
// nil for an item that is removed.
func naive(item map[string]string, operators []operator) map[string]string {
	item = maps.Clone(item)
	value := func(v operand) string {
		if v.field != "" {
			return item[v.field]
		}
		return v.static
	}
	var holds func(c condition) bool
	holds = func(c condition) bool {
		text, own := item[c.field], false
		switch c.filter {
		case "is_empty":
			own = text == ""
		case "is_not_empty":
			own = text != ""
		case "matches":
			own = c.pattern.MatchString(text)
		default:
			own = filters[c.filter](text, value(c.value))
		}
		return own || slices.ContainsFunc(c.children, holds)
	}
	for _, o := range operators {
		actions := o.actions
		for _, c := range o.conditions {
			if !holds(c) {
				actions = o.otherwise
			}
		}
		for _, a := range actions {
			text := item[a.field]
			switch {
			case a.field == allFields:
				return nil
			case a.kind == actionRemove || a.kind == actionClear:
				text = ""
			case a.kind == actionTransform:
				text = a.transform(text)
			case a.kind == actionReplace:
				text = strings.ReplaceAll(text, a.search, value(a.values[0]))
			default:
				text = ""
				for _, v := range a.values {
					text += value(v)
				}
			}
			item[a.field] = text
		}
	}
	return item
}

func TestApplyMatchesNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		feed, operators := randomFeed(rng), randomOperators(rng)
		before := fmt.Sprint(feed)

		got, err := Apply(feed, Operators{list: operators}, 1<<30)
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
			for _, name := range names {
				require.Equal(t, want[i][name], fields[name], "seed %d, item %d, field %s", seed, i, name)
			}
		}
		// The input's columns stay, in their order.
		require.Equal(t, feed.columns, slices.DeleteFunc(slices.Clone(got.columns), func(name string) bool {
			return !slices.Contains(feed.columns, name)
		}))
	}
}

var names = []string{"a", "b", "c", "d", "e"}

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

func randomName(rng *rand.Rand) string { return names[rng.IntN(len(names))] }

func randomValue(rng *rand.Rand) operand {
	if rng.IntN(2) == 0 {
		return operand{field: randomName(rng)}
	}
	return operand{static: randomText(rng)}
}

func randomConditions(rng *rand.Rand, depth int) (conditions []condition) {
	known := append(slices.Sorted(maps.Keys(filters)), "is_empty", "is_not_empty", "matches")
	for range rng.IntN(3) {
		c := condition{field: randomName(rng), filter: known[rng.IntN(len(known))], value: randomValue(rng)}
		if c.filter == "matches" {
			c.pattern = regexp.MustCompile("^[0-9.]+$")
		}
		if depth < 3 {
			c.children = randomConditions(rng, depth+1)
		}
		conditions = append(conditions, c)
	}
	return conditions
}

func randomActions(rng *rand.Rand) (actions []action) {
	kinds := []actionKind{actionRemove, actionClear, actionSet, actionCopy, actionCombine, actionAppend, actionReplace, actionTransform}
	for range rng.IntN(3) {
		a := action{field: randomName(rng), kind: kinds[rng.IntN(len(kinds))], search: "r", transform: capitalize}
		switch a.kind {
		case actionRemove:
			if rng.IntN(3) == 0 {
				a.field = allFields
			}
		case actionCopy:
			a.values = []operand{{field: randomName(rng)}}
		case actionSet, actionReplace:
			a.values = []operand{randomValue(rng)}
		case actionAppend:
			a.values = []operand{{field: a.field}, randomValue(rng)}
		case actionCombine:
			a.values = []operand{randomValue(rng), randomValue(rng), randomValue(rng)}
		}
		actions = append(actions, a)
	}
	return actions
}

func randomOperators(rng *rand.Rand) (operators []operator) {
	for range rng.IntN(4) {
		operators = append(operators, operator{
			conditions: randomConditions(rng, 0), actions: randomActions(rng), otherwise: randomActions(rng),
		})
	}
	return operators
}

func TestLayout(t *testing.T) {
	stock := []condition{{field: "stock", filter: "is_empty"}}
	set := func(field string) action {
		return action{field: field, kind: actionSet, values: []operand{{static: "x"}}}
	}
	from := func(field string, sources ...string) action {
		a := action{field: field, kind: actionCombine}
		for _, s := range sources {
			a.values = append(a.values, operand{field: s})
		}
		return a
	}
	for name, c := range map[string]struct {
		operators []operator
		want      string
	}{
		"beside the field of its condition":   {[]operator{{conditions: stock, actions: []action{set("new")}}}, "id title stock new price"},
		"else actions too":                    {[]operator{{conditions: stock, otherwise: []action{set("new")}}}, "id title stock new price"},
		"beside the fields of its value":      {[]operator{{conditions: stock, actions: []action{from("new", "title", "id")}}}, "id title new stock price"},
		"at the end":                          {[]operator{{actions: []action{set("new")}}}, "id title stock price new"},
		"in the order written":                {[]operator{{conditions: stock, actions: []action{set("n1"), set("n2")}, otherwise: []action{set("n3")}}}, "id title stock n1 n2 n3 price"},
		"a later operator goes closer":        {[]operator{{conditions: stock, actions: []action{set("n1")}}, {conditions: stock, actions: []action{set("n2")}}}, "id title stock n2 n1 price"},
		"beside a field that is itself new":   {[]operator{{conditions: stock, actions: []action{set("n1"), from("n2", "n1")}}}, "id title stock n1 n2 price"},
		"known fields stay":                   {[]operator{{conditions: stock, actions: []action{set("title")}}}, "id title stock price"},
		"nothing to clear makes no column":    {[]operator{{actions: []action{{field: "new", kind: actionClear}, {field: "new", kind: actionTransform}}}}, "id title stock price"},
		"an unknown field's test is no place": {[]operator{{conditions: []condition{{field: "nope", filter: "is_empty"}}, actions: []action{set("new")}}}, "id title stock price new"},
	} {
		got, err := layout([]string{"id", "title", "stock", "price"}, c.operators)
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.Join(got, " "), name)
	}
}

// TestApplyIsBounded: rules that double a field end with an error before they
// take the memory.
func TestApplyIsBounded(t *testing.T) {
	double := action{field: "a", kind: actionCombine, values: []operand{{field: "a"}, {field: "a"}}}
	explode := action{field: "a", kind: actionReplace, search: "x", values: []operand{{field: "a"}}}
	feed := &Feed{columns: []string{"a"}, items: []row{{"xx"}}}
	for _, a := range []action{double, explode} {
		operators := []operator{{actions: slices.Repeat([]action{a}, 100)}}
		_, err := Apply(feed, Operators{list: operators}, 1<<20)
		require.EqualError(t, err, "the rules make a feed of more than 1048576 bytes")
		_, err = Apply(feed, Operators{list: []operator{{actions: []action{a}}}}, 20)
		require.NoError(t, err, "what fits exactly is allowed")
		_, err = Apply(feed, Operators{list: []operator{{actions: []action{a}}}}, 19)
		assert.ErrorAs(t, err, new(*TooLarge))

		_, err = compiler{columns: []string{"a"}}.text(a)(row{"xx"}, "xx", &room{left: 1})
		assert.ErrorAs(t, err, new(*TooLarge), "what does not fit is not built")
	}

	var wide []action
	for i := range maxColumns {
		wide = append(wide, action{field: fmt.Sprint("n", i), kind: actionSet, values: []operand{{static: "x"}}})
	}
	_, err := Apply(feed, Operators{list: []operator{{actions: wide}}}, 1<<30)
	assert.EqualError(t, err, "the rules make a feed of more than 1000 columns")
}

// TestRemovedItemsLeaveRoom: an item that goes gives its bytes back.
func TestRemovedItemsLeaveRoom(t *testing.T) {
	feed := &Feed{columns: []string{"a"}, items: slices.Repeat([]row{{"text"}}, 10)}
	out, err := Apply(feed, Operators{list: []operator{{actions: []action{{field: allFields, kind: actionRemove}}}}}, 20)
	require.NoError(t, err)
	assert.Empty(t, out.items)
}
