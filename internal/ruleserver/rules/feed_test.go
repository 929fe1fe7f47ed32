package rules

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseFeedSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "empty: the first line must name the columns",
		"id,id\n":                              `line 1: column 2 has the name "id", which is empty or not unique`,
		"id,\n":                                `line 1: column 2 has the name "", which is empty or not unique`,
		"id,a\n1\n":                            "record on line 2: wrong number of fields",
		"id\n\"a\n":                            "parse error on line 2, column 4: extraneous or missing \" in quoted-field",
		"id\n\xff\n":                           "not UTF-8",
		strings.Repeat("a,", maxColumns) + "b": "line 1: 1001 columns, at most 1000 are allowed",
	} {
		_, err := ParseFeed([]byte(text))
		assert.EqualError(t, err, want, "%.20q", text)
	}
}

// TestEncode: an encoded feed can be parsed again, and has one line for each item.
func TestEncode(t *testing.T) {
	feed := &Feed{columns: []string{"id", "title"}}
	for i := range 100 {
		feed.items = append(feed.items, row{fmt.Sprint(i), `a "quoted", ünusual` + "\nline"})
	}
	again, err := ParseFeed(feed.Encode(CSV))
	require.NoError(t, err)
	require.Equal(t, feed, again)
	require.Equal(t, len(feed.items), bytes.Count(feed.Encode(NDJSON), []byte("\n")))
	empty := &Feed{columns: []string{"id", "title"}}
	assert.Equal(t, "id,title\n", string(empty.Encode(CSV)))
	assert.Empty(t, empty.Encode(NDJSON))
}

func FuzzParseFeed(f *testing.F) {
	f.Add([]byte("id,title\n1,\"a,b\"\n"))
	f.Add([]byte("\ufeffid\r\n1\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		feed, err := ParseFeed(data)
		if err != nil {
			return
		}
		for _, item := range feed.items {
			require.Len(t, item, len(feed.columns))
		}
		feed.Encode(NDJSON)
		feed.Encode(CSV)
	})
}

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		filter, field, value string
		want                 bool
	}{
		{"is_equal", "15.00", "15", true},
		{"is_equal", "a", "a", true},
		{"is_equal", "a", "A", false},
		{"is_equal", "", "0", false},
		{"is_not_equal", "1e1", "10", false},
		{"is_less_than", "9", "10", true}, // as text, "9" is greater
		{"is_less_than", "10", "10", false},
		{"is_less_equal", "10.0", "10", true},
		{"is_greater_than", "-1", "-2", true},
		{"is_greater_than", "2", "2", false},
		{"is_greater_equal", " 2 ", "2", true},
		{"contains", "T-shirt blue", "shirt", true},
		{"does_not_contain", "T-shirt", "shirt", false},
	} {
		assert.Equal(t, c.want, filters[c.filter].holds(c.field, c.value), "%q %s %q", c.field, c.filter, c.value)
	}
}

// A text that is not a number satisfies no numeric comparison, on either side.
func TestNonNumbersFailNumericFilters(t *testing.T) {
	for _, text := range []string{"", " ", "abc", "NaN", "inf", "-Infinity", "0x10", "1_000", "1,5", "1e999", "--1", "1 2"} {
		for _, filter := range []string{"is_less_than", "is_less_equal", "is_greater_than", "is_greater_equal"} {
			assert.False(t, filters[filter].holds(text, "1"), "%q %s 1", text, filter)
			assert.False(t, filters[filter].holds("1", text), "1 %s %q", filter, text)
		}
	}
}

func TestTransforms(t *testing.T) {
	for _, c := range []struct{ transform, text, want string }{
		{"capitalize", "dark BLUE", "Dark BLUE"},
		{"capitalize", "éclair", "Éclair"},
		{"capitalize", "ǆ", "ǅ"}, // a letter with a separate title case
		{"capitalize", "", ""},
		{"uppercase", "bleu foncé", "BLEU FONCÉ"},
		{"lowercase", "RED", "red"},
	} {
		assert.Equal(t, c.want, transforms[c.transform](c.text), "%s %q", c.transform, c.text)
	}
}

// Present sorts, searches and omits fields, in this order:
//   - numbers sort before texts, and the empty text is the first text; descending reverses this;
//   - equal items keep their order;
//   - the search ignores case, and does not find text in omitted fields;
//   - unknown fields in sort_by and omit are ignored.
func TestPresent(t *testing.T) {
	feed := &Feed{columns: []string{"id", "title", "price"}, items: []row{
		{"1", "Red shirt", "10"}, {"2", "blue SHIRT", "9"}, {"3", "Cap", ""}, {"4", "red cap", "10.0"}, {"5", "cap", "n/a"},
	}}
	for _, c := range []struct {
		p    Presentation
		want string
	}{
		{Presentation{}, "id,title,price\n1,Red shirt,10\n2,blue SHIRT,9\n3,Cap,\n4,red cap,10.0\n5,cap,n/a\n"},
		{Presentation{Sort: []SortKey{{Field: "price"}}}, "id,title,price\n2,blue SHIRT,9\n1,Red shirt,10\n4,red cap,10.0\n3,Cap,\n5,cap,n/a\n"},
		{Presentation{Sort: []SortKey{{Field: "price", Descending: true}, {Field: "id", Descending: true}}, Omit: []string{"price"}},
			"id,title\n5,cap\n3,Cap\n4,red cap\n1,Red shirt\n2,blue SHIRT\n"},
		{Presentation{Search: "shirt", Omit: []string{"none"}, Sort: []SortKey{{Field: "none"}}}, "id,title,price\n1,Red shirt,10\n2,blue SHIRT,9\n"},
		{Presentation{Search: "10", Omit: []string{"price", "id"}}, "title\n"},
	} {
		assert.Equal(t, c.want, string(c.p.Present(feed).Encode(CSV)), "%+v", c.p)
	}
}

// Apply skips the operators that only change omitted fields. The presented result is the same as if all operators had
// been applied.
func TestOmittedFieldsChangeNothingElse(t *testing.T) {
	saved := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		feed, operators := randomFeed(rng), randomOperators(rng)
		p := Presentation{Sort: []SortKey{{Field: randomName(rng)}}}
		for range 1 + rng.IntN(3) {
			p.Omit = append(p.Omit, randomName(rng))
		}
		whole, all, err := Apply(feed, operators, Presentation{}, 1<<30)
		require.NoError(t, err)
		less, some, err := Apply(feed, operators, p, 1<<30)
		require.NoError(t, err)
		saved += some.Operators - all.Operators
		require.Equal(t, string(p.Present(whole).Encode(CSV)), string(p.Present(less).Encode(CSV)), "seed %d: %v of %v", seed, p, operators)
	}
	assert.Greater(t, saved, 100, "random rules have operators to skip")
}

func TestPresentationOfAJob(t *testing.T) {
	job, err := ParseJob([]byte(`{"project_id": 1, "cache_result": false, "presentation": {
		"sort_by": ["price", {"field": "title", "descending": true}], "search": "x", "omit": ["stock"]}}`))
	require.NoError(t, err)
	assert.Equal(t, Presentation{Sort: []SortKey{{Field: "price"}, {Field: "title", Descending: true}}, Search: "x", Omit: []string{"stock"}}, job.Presentation)
	assert.False(t, *job.CacheResult)
}
