package intake

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

// described is what a reader makes of a request.
func described(t *testing.T, s Settings, h Head, body string) (Description, error) {
	t.Helper()
	r, err := NewReader(s)
	require.NoError(t, err)
	return r.Describe(h, []byte(body), true)
}

func TestMembersOutsideTheBody(t *testing.T) {
	outside := Default()
	outside.Project = Places{{Path: "/tenants/*/jobs"}}
	outside.Priority = Place{Header: "x-priority"}
	outside.QueueTimeout, outside.Session = Place{Header: "X-Queue"}, Place{Header: "X-Session"}
	outside.FirstByteTimeout, outside.StreamTimeout = Place{Header: "X-Evaluate"}, Place{Header: "X-Stream"}
	const path = "/tenants/a%20b/jobs/7"
	for name, c := range map[string]struct {
		head Head
		want string // the facts, or the error
		read Reading
	}{
		"all": {
			Head{"GET", path, http.Header{"X-Priority": {"high"}, "X-Queue": {"1.5"}, "X-Session": {"s"}, "X-Evaluate": {"2"}, "X-Stream": {"1e1"}}},
			`project="a b" priority=high session="s" queue=1.5s evaluate=2s stream=10s`, Full,
		},
		"nothing":              {Head{"GET", "/", nil}, "-", NoProject},
		"another path":         {Head{"PUT", "/tenants/7/files", nil}, "-", NoProject},
		"an empty segment":     {Head{"PUT", "/tenants//jobs", nil}, "-", NoProject},
		"a broken escape":      {Head{"GET", "/tenants/%zz/jobs", nil}, `project="%zz"`, Full},
		"an empty header":      {Head{"GET", path, http.Header{"X-Priority": {""}}}, `project="a b"`, Full},
		"no UTF-8":             {Head{"GET", "/", http.Header{"X-Session": {"\xff"}}}, `session="` + "\uFFFD" + `"`, NoProject},
		"not a priority":       {Head{"GET", path, http.Header{"X-Priority": {"urgent"}}}, `header x-priority must be "high" or "low", not "urgent"`, Unread},
		"two priorities":       {Head{"GET", path, http.Header{"X-Priority": {"low", "high"}}}, "header x-priority occurs more than once", Unread},
		"no number":            {Head{"GET", path, http.Header{"X-Queue": {"soon"}}}, "header X-Queue must be a number of seconds, not a string", Unread},
		"no JSON number":       {Head{"GET", path, http.Header{"X-Queue": {"nan"}}}, "header X-Queue must be a number of seconds, not a string", Unread},
		"negative":             {Head{"GET", path, http.Header{"X-Queue": {"-1"}}}, "header X-Queue must not be negative", Unread},
		"a long session":       {Head{"GET", path, http.Header{"X-Session": {strings.Repeat("x", 129)}}}, `project="a b"`, Full},
		"a long project":       {Head{"GET", "/tenants/" + strings.Repeat("x", 257) + "/jobs", nil}, "path /tenants/*/jobs is longer than 256 bytes", Unread},
		"a path without end":   {Head{"GET", "/tenants/" + strings.Repeat("x", 9000) + "/jobs", nil}, "-", NoProject},
		"a path that is short": {Head{"GET", "/tenants/7", nil}, "-", NoProject},
	} {
		d, err := described(t, outside, c.head, "{")
		assert.Equal(t, c.want, describe(d.Facts, err), name)
		assert.Equal(t, c.read, d.Reading, name)
		assert.Empty(t, d.Unread, "%s: the body is not needed", name)
		assert.Equal(t, Key(d.Facts.Project), d.Facts.Key, name)
	}
}

// A member can be at other places in the body, in a header or in the path.
func TestPlaces(t *testing.T) {
	with := func(change func(*Settings)) Settings { s := Default(); change(&s); return s }
	none := Default()
	nested := with(func(s *Settings) {
		s.Project[0].Pointer, s.Session.Pointer = "/meta/a~1b", "/é/0"
		s.QueueTimeout.Pointer, s.FirstByteTimeout.Pointer = "/meta/limits/~0q", "/meta/limits/"
	})
	prefetchPath := with(func(s *Settings) { s.Prefetch = Place{Path: "/v1/prefetch"} })
	prefetchBody := with(func(s *Settings) { s.Prefetch = Place{Pointer: "/warm"} })
	prefetchHeader := with(func(s *Settings) { s.Prefetch = Place{Header: "X-Member"} })
	bytesBody := with(func(s *Settings) { s.Bytes = Place{Pointer: "/data/bytes"} })
	bytesHeader := with(func(s *Settings) { s.Bytes = Place{Header: "X-Member"} })
	for _, c := range []struct {
		s                        Settings
		path, header, body, want string
	}{
		{nested, "/", "", `{"project_id":1,"priority":"high","é":{"0":"s"},"meta":{"a/b":2,"limits":{"":4,"~q":3}},"timeouts":{"queue_seconds":9}}`,
			`project="2" priority=high session="s" queue=3s evaluate=4s`},
		{nested, "/", "", `{"meta":{"a/b":1.5}}`, "/meta/a~1b at byte 15 must be an integer or a string, not 1.5"},
		{nested, "/", "", `{"meta":{"limits":3}}`, "/meta/limits at byte 18 must be an object, not a number"},
		{nested, "/", "", `{"meta":["s"]}`, "/meta at byte 8 must be an object, not an array"},

		{none, "/v1/prefetch", "true", `{"project_id":1}`, `project="1"`},
		{prefetchPath, "/v1/prefetch", "", `{"project_id":1}`, `project="1" prefetch`},
		{prefetchPath, "/v1/prefetch/now", "", `{`, `invalid JSON at byte 1: the body ends within the job`},
		{prefetchPath, "/v1/prefetches", "", `{"project_id":1}`, `project="1"`},
		{prefetchPath, "/v1", "", `{"project_id":1}`, `project="1"`},
		{prefetchBody, "/", "", `{"project_id":1,"warm":true}`, `project="1" prefetch`},
		{prefetchBody, "/", "", `{"project_id":1,"warm":false}`, `project="1"`},
		{prefetchBody, "/", "", `{"project_id":1,"warm":null}`, `project="1"`},
		{prefetchBody, "/", "", `{"project_id":1,"warm":1}`, "/warm at byte 23 must be true or false"},
		{prefetchHeader, "/", "true", `{"project_id":1}`, `project="1" prefetch`},
		{prefetchHeader, "/", "maybe", `{}`, "header X-Member must be true or false"},

		{none, "/", "7", `{"data":{"bytes":7},"bytes":7,"none":7}`, "-"},
		{bytesBody, "/", "7", `{"data":{"bytes":52428800}}`, "bytes=5.24288e+07"},
		{bytesBody, "/", "7", `{"data":null}`, "-"},
		{bytesBody, "/", "7", `{"data":{"bytes":null}}`, "-"},
		{bytesBody, "/", "7", `{"data":{"bytes":"7"}}`, "/data/bytes at byte 17 must be a number of bytes, not a string"},
		{bytesHeader, "/", "1.5e6", `{}`, "bytes=1.5e+06"},
		{bytesHeader, "/", "-1", `{}`, "header X-Member must not be negative"},
		{bytesHeader, "/", "1e16", `{}`, "header X-Member must be at most 1000000000000000 bytes"},
		{bytesHeader, "/", "1e999", `{}`, "header X-Member must be at most 1000000000000000 bytes"},
		{bytesHeader, "/", "1" + strings.Repeat("0", 64), `{}`, "header X-Member is longer than 64 digits"},
	} {
		d, err := described(t, c.s, Head{"POST", c.path, http.Header{"X-Member": {c.header}}}, c.body)
		assert.Equal(t, c.want, describe(d.Facts, err), "%s %q %s", c.path, c.header, c.body)
	}
}

// Prompts with the same first block belong to one project, whatever follows.
func TestTheFirstBlockNamesTheProject(t *testing.T) {
	s := Default()
	s.Project = Places{{Pointer: "/model"}, {Pointer: "/prompt", Blocks: 8}, {Pointer: "/messages", Blocks: 32}}
	project := func(body string) string {
		t.Helper()
		d, err := described(t, s, Head{Method: "POST"}, body)
		require.NoError(t, err, body)
		assert.Equal(t, Key(d.Facts.Project), d.Facts.Key)
		return d.Facts.Project
	}
	first := project(`{"model":"m","prompt":"You are a pirate."}`)
	assert.Regexp(t, `^m/[0-9a-f]{16}$`, first, "the prompt itself is not shown")
	assert.Equal(t, first, project(`{"prompt":"You are the best.","model":"m"}`))

	const chat = `{"model":"m","messages":[{"role":"system","content":"Be brief."}`
	assert.Equal(t, project(chat+`]}`), project(chat+`,{"role":"user","content":"Hello"}]}`), "a session that grows")
	assert.NotEqual(t, first, project(chat+`]}`))
	assert.Equal(t, "m", project(`{"model":"m"}`), "what is absent is left out")
	assert.Equal(t, "m", project(`{"model":"m","prompt":""}`))
	assert.Equal(t, "m", project(`{"model":"m","prompt":null}`))
	assert.Empty(t, project(`{}`))
	for _, any := range []string{`[1,2,3]`, `{"a":1}`, `true`, `17`} {
		assert.Regexp(t, `^[0-9a-f]{16}$`, project(`{"prompt":`+any+`}`), "a value of any type")
	}

	_, err := described(t, s, Head{Method: "POST"}, `{"model":"`+strings.Repeat("m", 250)+`","prompt":"x"}`)
	assert.EqualError(t, err, "the project is longer than 256 bytes with all its parts")

	s.Project = Places{{Path: "/cache/*/*", Blocks: 9}}
	d, err := described(t, s, Head{Method: "GET", Path: "/cache/ac/0123456789"}, "")
	require.NoError(t, err)
	e, err := described(t, s, Head{Method: "GET", Path: "/cache/ac/01234567ff"}, "")
	require.NoError(t, err)
	assert.Equal(t, d.Facts.Key, e.Facts.Key)
	assert.NotZero(t, d.Facts.Key)
}

// Jobs have the same length key if the values at all places are the same; it never makes a difference to the other facts.
func TestLengthKey(t *testing.T) {
	s := Default()
	s.LengthKey = Places{{Pointer: "/channel"}, {Pointer: "/rules"}, {Header: "X-Kind"}}
	key := func(body, kind string) uint64 {
		h := Head{Method: http.MethodPost, Header: http.Header{}}
		if kind != "" {
			h.Header.Set("X-Kind", kind)
		}
		d, err := described(t, s, h, body)
		require.NoError(t, err, body)
		assert.Equal(t, "p", d.Facts.Project)
		assert.Equal(t, Full, d.Reading)
		return d.Facts.LengthKey
	}
	long := strings.Repeat("x", 10_000)
	seen := map[uint64]string{}
	for _, c := range []struct{ body, kind string }{
		{`"channel":"7"`, ""}, {`"channel":"7"`, "7"}, {`"channel":"8"`, ""}, {`"rules":"7"`, ""}, {`"rules":[{"a":1},{"b":2}]`, ""},
		{`"rules":[{"a":1},{"b":3}]`, ""}, {`"rules":true`, ""}, {`"channel":"` + long + `"`, ""}, {`"channel":"` + long + `y"`, ""}, {`"x":1`, "7"},
	} {
		got := key(`{`+c.body+`,"project_id":"p"}`, c.kind)
		assert.NotZero(t, got, c)
		assert.Equal(t, got, key(`{"project_id":"p","priority":"low", `+c.body+`}`, c.kind))
		assert.Empty(t, seen[got], c)
		seen[got] = c.body + c.kind
	}
	assert.Equal(t, key(`{"rules":true,"project_id":"p"}`, "a"), LengthKey([]string{"", "true", "a"}))
	assert.Zero(t, LengthKey([]string{"", ""}))
	assert.Equal(t, key(`{"channel":7,"project_id":"p"}`, ""), key(`{"channel":"7","project_id":"p"}`, ""), "as of a project, the type makes no difference")
	for _, none := range []string{`"x":1`, `"channel":null`, `"channel":"","rules":null`} {
		assert.Zero(t, key(`{`+none+`,"project_id":"p"}`, ""), none)
	}
}

// A member that is nowhere leaves its name in the body to others.
func TestMembersThatAreNowhere(t *testing.T) {
	s := Default()
	none := Place{Pointer: "none"}
	s.Priority, s.QueueTimeout, s.FirstByteTimeout, s.StreamTimeout, s.Session = none, none, none, none, none
	d, err := described(t, s, Head{Method: "POST"}, `{"priority":7,"project_id":1,"timeouts":[]}`)
	assert.Equal(t, `project="1"`, describe(d.Facts, err))
	assert.Equal(t, Full, d.Reading)
	r, err := NewReader(s)
	require.NoError(t, err)
	d, err = r.Describe(Head{Method: "POST"}, []byte(`{"project_id":1,"x":`), false)
	assert.Equal(t, `project="1"`, describe(d.Facts, err))
	assert.Equal(t, Full, d.Reading, "nothing else could come")
	s.Project = Places{none}
	d, err = described(t, s, Head{Method: "POST"}, "not JSON")
	assert.Equal(t, "-", describe(d.Facts, err))
	assert.Equal(t, NoProject, d.Reading)
}

// FuzzPath: what is found in a path is part of it, and no path ends in a panic.
func FuzzPath(f *testing.F) {
	f.Add("/tenants/*/jobs", "/tenants/7/jobs/8")
	f.Add("/*/*", "/a%2fb//")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		var faults settings.Faults
		Place{Path: pattern}.check(&faults, project)
		if pattern == "" || faults.Err() != nil {
			return
		}
		found := Place{Path: pattern}.inPath(path)
		require.LessOrEqual(t, len(found), len(path))
		if found != "" && !strings.Contains(path, "%") {
			require.True(t, strings.HasPrefix(path, "/"))
			for part := range strings.SplitSeq(found, "/") {
				require.Contains(t, path, part)
			}
		}
	})
}

// Settings that a file cannot have, and headers for upstreams. internal/config tests the others.
func TestRefusedSettings(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		`priority: "/\xff" must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name`: func(s *Settings) { s.Priority.Pointer = "/\xff" },
		`project.blocks: -1 is not between 1 and 65536`:                                               func(s *Settings) { s.Project[0].Blocks = -1 },
		`expected_header: "X Y" is not a valid header name`:                                           func(s *Settings) { s.ExpectedHeader = "X Y" },
		`expected_header: "Te" is reserved for HTTP or pilotfish`:                                     func(s *Settings) { s.ExpectedHeader = "TE" },
	} {
		s := Default()
		change(&s)
		var f settings.Faults
		s.Check(&f)
		assert.EqualError(t, f.Err(), want)
	}
	s := Default()
	s.ExpectedHeader = "" // sends none
	var f settings.Faults
	s.Check(&f)
	require.NoError(t, f.Err())
	_, err := NewReader(Settings{})
	require.ErrorContains(t, err, `intake: project: "" is not a JSON Pointer such as /project_id, nor a section such as {header: x-project}`)
}

// A walk has room for as many members as there may be, by the longest pointers.
func TestLargestTree(t *testing.T) {
	at := func(name string) Place { return Place{Pointer: strings.Repeat("/"+name, 10)} }
	r, err := NewReader(Settings{
		Project: Places{at("a"), at("g"), at("h"), at("i")}, Bytes: at("j"),
		Priority: at("b"), QueueTimeout: at("c"), FirstByteTimeout: at("d"), StreamTimeout: at("e"), Session: at("f"), Prefetch: at("k"),
		LengthKey: Places{at("l"), at("m"), at("n"), at("o")},
	})
	require.NoError(t, err)
	var body strings.Builder
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"} {
		value := []string{"1", `"high"`, "2", "3", "4", `"s"`, "7", "8", "9", "10", "true", "1", "2", "3", "4"}[i]
		body.WriteString([]string{"{", ","}[min(i, 1)])
		body.WriteString(strings.Repeat(`"`+name+`":{`, 9) + `"` + name + `":` + value + strings.Repeat("}", 9))
	}
	body.WriteString("}")
	facts, _, err := r.read(Head{}, []byte(body.String()), true)
	require.NoError(t, err)
	assert.Equal(t, `project="1/7/8/9" priority=high prefetch session="s" bytes=10 queue=2s evaluate=3s stream=4s`, describe(facts, nil))
	assert.NotZero(t, facts.LengthKey)
}
