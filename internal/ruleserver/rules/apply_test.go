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
func naive(item map[string]string, operators []Operator) map[string]string {
	item = maps.Clone(item)
	value := func(v Value) string {
		if v.Field != "" {
			return item[v.Field]
		}
		return v.Static
	}
	var holds func(c Condition) bool
	holds = func(c Condition) bool {
		text, own := item[c.Field], false
		switch c.Filter {
		case "is_empty":
			own = text == ""
		case "is_not_empty":
			own = text != ""
		case "matches":
			own = c.Pattern.MatchString(text)
		default:
			own = filters[c.Filter](text, value(c.Value))
		}
		return own || slices.ContainsFunc(c.Children, holds)
	}
	for _, o := range operators {
		actions := o.Actions
		for _, c := range o.Conditions {
			if !holds(c) {
				actions = o.Else
			}
		}
		for _, a := range actions {
			text := item[a.Field]
			switch {
			case a.Field == AllFields:
				return nil
			case a.Kind == Remove || a.Kind == Clear:
				text = ""
			case a.Kind == TextTransform:
				text = a.Transform(text)
			case a.Kind == Replace:
				text = strings.ReplaceAll(text, a.Search, value(a.Values[0]))
			default:
				text = ""
				for _, v := range a.Values {
					text += value(v)
				}
			}
			item[a.Field] = text
		}
	}
	return item
}

func TestApplyMatchesNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		feed, operators := randomFeed(rng), randomOperators(rng)
		before := fmt.Sprint(feed)

		got, err := Apply(feed, operators, 1<<30)
		require.NoError(t, err)
		require.Equal(t, before, fmt.Sprint(feed), "seed %d: the input changed", seed)

		var want []map[string]string
		for _, item := range feed.Items {
			if made := naive(asMap(feed.Columns, item), operators); made != nil {
				want = append(want, made)
			}
		}
		require.Len(t, got.Items, len(want), "seed %d", seed)
		for i, item := range got.Items {
			fields := asMap(got.Columns, item)
			for _, name := range names {
				require.Equal(t, want[i][name], fields[name], "seed %d, item %d, field %s", seed, i, name)
			}
		}
		// The input's columns stay, in their order.
		require.Equal(t, feed.Columns, slices.DeleteFunc(slices.Clone(got.Columns), func(name string) bool {
			return !slices.Contains(feed.Columns, name)
		}))
	}
}

var names = []string{"a", "b", "c", "d", "e"}

func asMap(columns []string, item Item) map[string]string {
	fields := map[string]string{}
	for i, name := range columns {
		fields[name] = item[i]
	}
	return fields
}

func randomFeed(rng *rand.Rand) *Feed {
	feed := &Feed{Columns: []string{"a", "b", "c"}}
	for range rng.IntN(6) {
		feed.Items = append(feed.Items, Item{randomText(rng), randomText(rng), randomText(rng)})
	}
	return feed
}

func randomText(rng *rand.Rand) string {
	return []string{"", "0", "-1", "15.00", "15", "red", "Red", "x1"}[rng.IntN(8)]
}

func randomName(rng *rand.Rand) string { return names[rng.IntN(len(names))] }

func randomValue(rng *rand.Rand) Value {
	if rng.IntN(2) == 0 {
		return Value{Field: randomName(rng)}
	}
	return Value{Static: randomText(rng)}
}

func randomConditions(rng *rand.Rand, depth int) (conditions []Condition) {
	known := append(slices.Sorted(maps.Keys(filters)), "is_empty", "is_not_empty", "matches")
	for range rng.IntN(3) {
		c := Condition{Field: randomName(rng), Filter: known[rng.IntN(len(known))], Value: randomValue(rng)}
		if c.Filter == "matches" {
			c.Pattern = regexp.MustCompile("^[0-9.]+$")
		}
		if depth < 3 {
			c.Children = randomConditions(rng, depth+1)
		}
		conditions = append(conditions, c)
	}
	return conditions
}

func randomActions(rng *rand.Rand) (actions []Action) {
	kinds := []ActionKind{Remove, Clear, Set, Copy, Combine, Append, Replace, TextTransform}
	for range rng.IntN(3) {
		a := Action{Field: randomName(rng), Kind: kinds[rng.IntN(len(kinds))], Search: "r", Transform: capitalize}
		switch a.Kind {
		case Remove:
			if rng.IntN(3) == 0 {
				a.Field = AllFields
			}
		case Copy:
			a.Values = []Value{{Field: randomName(rng)}}
		case Set, Replace:
			a.Values = []Value{randomValue(rng)}
		case Append:
			a.Values = []Value{{Field: a.Field}, randomValue(rng)}
		case Combine:
			a.Values = []Value{randomValue(rng), randomValue(rng), randomValue(rng)}
		}
		actions = append(actions, a)
	}
	return actions
}

func randomOperators(rng *rand.Rand) (operators []Operator) {
	for range rng.IntN(4) {
		operators = append(operators, Operator{
			Conditions: randomConditions(rng, 0), Actions: randomActions(rng), Else: randomActions(rng),
		})
	}
	return operators
}

func TestLayout(t *testing.T) {
	stock := []Condition{{Field: "stock", Filter: "is_empty"}}
	set := func(field string) Action { return Action{Field: field, Kind: Set, Values: []Value{{Static: "x"}}} }
	from := func(field string, sources ...string) Action {
		a := Action{Field: field, Kind: Combine}
		for _, s := range sources {
			a.Values = append(a.Values, Value{Field: s})
		}
		return a
	}
	for name, c := range map[string]struct {
		operators []Operator
		want      string
	}{
		"beside the field of its condition":   {[]Operator{{Conditions: stock, Actions: []Action{set("new")}}}, "id title stock new price"},
		"else actions too":                    {[]Operator{{Conditions: stock, Else: []Action{set("new")}}}, "id title stock new price"},
		"beside the fields of its value":      {[]Operator{{Conditions: stock, Actions: []Action{from("new", "title", "id")}}}, "id title new stock price"},
		"at the end":                          {[]Operator{{Actions: []Action{set("new")}}}, "id title stock price new"},
		"in the order written":                {[]Operator{{Conditions: stock, Actions: []Action{set("n1"), set("n2")}, Else: []Action{set("n3")}}}, "id title stock n1 n2 n3 price"},
		"a later operator goes closer":        {[]Operator{{Conditions: stock, Actions: []Action{set("n1")}}, {Conditions: stock, Actions: []Action{set("n2")}}}, "id title stock n2 n1 price"},
		"beside a field that is itself new":   {[]Operator{{Conditions: stock, Actions: []Action{set("n1"), from("n2", "n1")}}}, "id title stock n1 n2 price"},
		"known fields stay":                   {[]Operator{{Conditions: stock, Actions: []Action{set("title")}}}, "id title stock price"},
		"nothing to clear makes no column":    {[]Operator{{Actions: []Action{{Field: "new", Kind: Clear}, {Field: "new", Kind: TextTransform}}}}, "id title stock price"},
		"an unknown field's test is no place": {[]Operator{{Conditions: []Condition{{Field: "nope", Filter: "is_empty"}}, Actions: []Action{set("new")}}}, "id title stock price new"},
	} {
		got, err := layout([]string{"id", "title", "stock", "price"}, c.operators)
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.Join(got, " "), name)
	}
}

// TestApplyIsBounded: rules that double a field end with an error before they
// take the memory.
func TestApplyIsBounded(t *testing.T) {
	double := Action{Field: "a", Kind: Combine, Values: []Value{{Field: "a"}, {Field: "a"}}}
	explode := Action{Field: "a", Kind: Replace, Search: "x", Values: []Value{{Field: "a"}}}
	feed := &Feed{Columns: []string{"a"}, Items: []Item{{"xx"}}}
	for _, action := range []Action{double, explode} {
		operators := []Operator{{Actions: slices.Repeat([]Action{action}, 100)}}
		_, err := Apply(feed, operators, 1<<20)
		require.EqualError(t, err, "the rules make a feed of more than 1048576 bytes")
		_, err = Apply(feed, []Operator{{Actions: []Action{action}}}, 20)
		require.NoError(t, err, "what fits exactly is allowed")
		_, err = Apply(feed, []Operator{{Actions: []Action{action}}}, 19)
		assert.ErrorAs(t, err, new(*TooLarge))
	}

	var wide []Action
	for i := range MaxColumns {
		wide = append(wide, Action{Field: fmt.Sprint("n", i), Kind: Set, Values: []Value{{Static: "x"}}})
	}
	_, err := Apply(feed, []Operator{{Actions: wide}}, 1<<30)
	assert.EqualError(t, err, "the rules make a feed of more than 1000 columns")
}

// TestRemovedItemsLeaveRoom: an item that goes gives its bytes back.
func TestRemovedItemsLeaveRoom(t *testing.T) {
	feed := &Feed{Columns: []string{"a"}, Items: slices.Repeat([]Item{{"text"}}, 10)}
	out, err := Apply(feed, []Operator{{Actions: []Action{{Field: AllFields, Kind: Remove}}}}, 20)
	require.NoError(t, err)
	assert.Empty(t, out.Items)
}
