package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
)

func TestListingReadsIDs(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"as specified", `{"projects":[{"id":12345,"version":3,"bytes":52428800,"age_seconds":12.5},{"id":"abc"}]}`, []string{"12345", "abc"}},
		{"an integer and its string are one", `{"projects":[{"id":7},{"id":"7"}]}`, []string{"7"}},
		{"a leading zero is another", `{"projects":[{"id":"07"},{"id":7}]}`, []string{"07", "7"}},
		{"negative", `{"projects":[{"id":-7},{"id":-0}]}`, []string{"-7", "0"}},
		{"beyond 64 bits", `{"projects":[{"id":123456789012345678901234567890}]}`, []string{"123456789012345678901234567890"}},
		{"escapes", `{"pro\u006aects":[{"\u0069d":"a\u00e9\n\ud83d\ude00"}]}`, []string{"aé\n😀"}},
		{"invalid UTF-8", "{\"projects\":[{\"id\":\"a\xff\"}]}", []string{"a\ufffd"}},
		{"other members, in any order", `{"a":{"projects":[{}]},"projects":[{"x":[{"id":1}],"id":2,"y":null}],"b":[[]]}`, []string{"2"}},
		{"other members twice", `{"a":1,"a":2,"projects":[]}`, nil},
		{"none", `{"projects":[]}`, nil},
		{"null", `{"projects":null}`, nil},
		{"no project", `{"projects":[{"id":""}]}`, nil},
		{"of the longest", `{"projects":[{"id":"` + strings.Repeat("x", intake.MaxProject) + `"}]}`, []string{strings.Repeat("x", intake.MaxProject)}},
		{"longer than any job's", `{"projects":[{"id":"` + strings.Repeat("x", intake.MaxProject+1) + `"},{"id":1}]}`, []string{"1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := readListing(iotest.OneByteReader(strings.NewReader(c.text)), 10, 0)
			require.NoError(t, err)
			assert.Equal(t, len(c.want), set.Len())
			for _, id := range c.want {
				assert.True(t, set.Contains(intake.Key(id)), "%q", id)
			}
		})
	}
}

func TestListingRefusesWhatIsNone(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "empty"},
		{"null", "null", "projects is missing"},
		{"an array", `[{"id":1}]`, ": unexpected ["},
		{"no projects", `{"project":[]}`, "projects is missing"},
		{"in another case", `{"Projects":[]}`, "projects is missing"},
		{"not an array", `{"projects":{"id":1}}`, "/projects: not an array"},
		{"bare ids", `{"projects":[{"id":1},2]}`, "/projects/1: unexpected number"},
		{"no id", `{"projects":[{"id":1},{"ID":2}]}`, "/projects: element 1: the id is neither an integer nor a string"},
		{"id null", `{"projects":[{"id":null}]}`, "/projects: element 0: the id is neither an integer nor a string"},
		{"id an object", `{"projects":[{"id":{"id":1}}]}`, "/projects: element 0: the id is neither an integer nor a string"},
		{"id a fraction", `{"projects":[{"id":1.0}]}`, "/projects: element 0: the id is neither an integer nor a string"},
		{"id a power", `{"projects":[{"id":1e3}]}`, "/projects: element 0: the id is neither an integer nor a string"},
		{"too many", `{"projects":[` + strings.Repeat(`{"id":1},`, 10) + `{"id":1}]}`, "/projects: element 10: more than 10 projects"},
		{"more after it", `{"projects":[]}{}`, "unexpected data after the end"},
		{"a long string", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, "a value is longer than 65536 bytes"},
		{"a long project", `{"projects":[{"x":"` + strings.Repeat("x", 1<<20) + `"}]}`, "a value is longer than 65536 bytes"},
		{"long white space", `{"projects":` + strings.Repeat(" ", 1<<20) + `[]}`, "a value is longer than 65536 bytes"},
		{"HTML", "<html>", "jsontext: invalid character '<' at start of value"},
		{"cut off", `{"projects":[{"id":1}`, `jsontext: unexpected EOF within "/projects" after offset 21`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readListing(strings.NewReader(c.text), 10, 0)
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestListingHasSizes(t *testing.T) {
	set, err := readListing(strings.NewReader(`{"projects":[{"id":1,"bytes":50},{"id":2},{"id":3,"bytes":-1},{"id":4,"bytes":"5"},{"bytes":1e999,"id":5}]}`), 10, 0)
	require.NoError(t, err)
	for id, bytes := range map[string]float64{"1": 50, "2": 0, "3": 0, "4": 0, "5": math.Inf(1), "6": 0} {
		assert.Equal(t, bytes, set.Bytes(intake.Key(id)), id)
	}
	assert.Zero(t, projectSet(nil).Len())
	assert.False(t, projectSet(nil).Contains(1))
}

func TestListingBoundsNesting(t *testing.T) {
	_, err := readListing(strings.NewReader(`{"x":`+strings.Repeat("[", 20_000)), 10, 0)
	assert.ErrorContains(t, err, "exceeded max depth")
}

// TestPollAsksOnlyForAChangedListing polls one upstream whose listing changes.
func TestPollAsksOnlyForAChangedListing(t *testing.T) {
	var tag, asked, body string
	status := http.StatusOK
	address := upstream(t, nil, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("If-None-Match")
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		if status == http.StatusOK && asked != "" && asked == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	r := newRecorded(t, patiently)
	u := r.upstream(address)
	expect := func(wantAsked string, wantIDs ...string) {
		t.Helper()
		r.once(t, u.poll)
		assert.Empty(t, r.failed)
		assert.Equal(t, wantAsked, asked)
		require.Len(t, r.listings[address], 1)
		cached := r.listings[address][0].cached
		assert.Equal(t, len(wantIDs), cached.Len())
		for _, id := range wantIDs {
			assert.True(t, cached.Contains(intake.Key(id)), id)
		}
	}

	body = `{"projects":[{"id":1}]}`
	expect("", "1")
	tag, body = `"a"`, `{"projects":[{"id":1},{"id":2}]}`
	expect("", "1", "2")
	body = ""
	expect(`"a"`, "1", "2") // unchanged

	tag, body = `W/"b"`, `{"projects":[`
	r.once(t, u.poll)
	assert.Len(t, r.failed, 1)
	assert.Empty(t, r.listings, "an unreadable listing changes nothing")
	tag = `"a"`
	expect(`"a"`, "1", "2") // and the last listing still applies

	tag, body = `W/"c"`, `{"projects":[]}`
	expect(`"a"`)
	assert.Equal(t, `W/"c"`, u.listing.etag)

	status = http.StatusNotFound
	r.once(t, u.poll)
	assert.Empty(t, r.failed, "an upstream may have no listing")
	assert.Empty(t, r.listings)

	status, tag, body = http.StatusOK, "", `{"projects":[{"id":3}]}`
	expect("", "3")
	expect("", "3")
}

// FuzzCacheListing compares with a naive reader of the same bytes.
func FuzzCacheListing(f *testing.F) {
	for _, seed := range []string{
		`{"projects":[{"id":12345,"version":3,"bytes":52428800,"age_seconds":12.5}]}`,
		`{"projects":[{"id":"a\u00e9"},{"id":-0},{"x":[1,{"id":2}],"id":3}],"b":null}`,
		`{"projects":null}`, `{"projects":[{"id":1,"id":2}]}`, `{"projects":[1]}`, `[]`, `{"projects":[]} x`, "{\"projects\":[{\"id\":\"\xff\"}]}",
	} {
		f.Add([]byte(seed))
	}
	const most = 5
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxToken {
			return // the naive reader has no bounds
		}
		want, ok := naiveListing(data, most)
		got, err := readListing(bytes.NewReader(data), most, 0)
		require.Equal(t, ok, err == nil, "%v", err)
		if !ok {
			return
		}
		require.Equal(t, len(want), got.Len())
		for key := range want {
			require.True(t, got.Contains(key))
		}
	})
}

func naiveListing(data []byte, most int) (keys map[uint64]struct{}, ok bool) {
	var document map[string]json.RawMessage // of repeated members, the last counts
	var entries []map[string]json.RawMessage
	if json.Unmarshal(data, &document) != nil || document["projects"] == nil ||
		json.Unmarshal(document["projects"], &entries) != nil || len(entries) > most {
		return nil, false
	}
	keys = map[uint64]struct{}{}
	for _, entry := range entries {
		var id any
		dec := json.NewDecoder(bytes.NewReader(entry["id"]))
		dec.UseNumber()
		if dec.Decode(&id) != nil {
			return nil, false
		}
		text, isString := id.(string)
		if number, isNumber := id.(json.Number); isNumber {
			text = number.String()
			if strings.ContainsAny(text, ".eE") {
				return nil, false
			}
			if text == "-0" {
				text = "0"
			}
		} else if !isString {
			return nil, false
		}
		if text != "" && len(text) <= intake.MaxProject {
			keys[intake.Key(text)] = struct{}{}
		}
	}
	return keys, true
}
