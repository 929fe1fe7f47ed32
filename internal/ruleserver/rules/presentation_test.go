package rules

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

// Whatever is omitted, the rest is what it would be without, in the same columns.
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
	assert.Greater(t, saved, 100)
}

func TestPresentationOfAJob(t *testing.T) {
	job, err := ParseJob([]byte(`{"project_id": 1, "cache_result": false, "presentation": {
		"sort_by": ["price", {"field": "title", "descending": true}], "search": "x", "omit": ["stock"]}}`))
	require.NoError(t, err)
	assert.Equal(t, Presentation{Sort: []SortKey{{Field: "price"}, {Field: "title", Descending: true}}, Search: "x", Omit: []string{"stock"}}, job.Presentation)
	assert.False(t, *job.CacheResult)
	for body, want := range map[string]string{
		`{"project_id": 1, "presentation": {"sort_by": [{"descending": true}]}}`:                                 "/presentation/sort_by/0/field: missing",
		`{"project_id": 1, "presentation": {"sort": []}}`:                                                        "/presentation/sort",
		`{"project_id": 1, "presentation": {"omit": [1]}}`:                                                       "/presentation/omit/0",
		`{"project_id": 1, "cache_result": "no"}`:                                                                "/cache_result",
		`{"project_id": 1, "presentation": {"sort_by": ["` + string(slices.Repeat([]byte(`a","`), 16)) + `a"]}}`: "16 fields at most",
	} {
		_, err := ParseJob([]byte(body))
		assert.ErrorContains(t, err, want, "%s", body)
	}
}
