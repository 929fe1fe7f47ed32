package rules

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseFeedSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "empty: want a first line that names the columns",
		"id,id\n":                              `line 1: column 2 is named "id": want a name of its own`,
		"id,\n":                                `line 1: column 2 is named "": want a name of its own`,
		"id,a\n1\n":                            "record on line 2: wrong number of fields",
		"id\n\"a\n":                            "parse error on line 2, column 4: extraneous or missing \" in quoted-field",
		"id\n\xff\n":                           "not UTF-8",
		strings.Repeat("a,", maxColumns) + "b": "line 1: 1001 columns, and at most 1000 are allowed",
	} {
		_, err := ParseFeed([]byte(text))
		assert.EqualError(t, err, want, "%.20q", text)
	}
}

// TestEncode: a feed can be read again, and has a line for each item.
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
