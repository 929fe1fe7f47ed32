package discovery

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostile is a reply in a few words: what follows a beginning for ever, or as often as times.
type hostile struct {
	begin, again string
	times        int // 0 is for ever, -1 as a failure
	why          string
	end          string // after the repetitions
}

// small is what one hostile reply may make of memory, in all; its bytes are 32 MiB at most.
const small = 256 << 20

const tooLong, tooMany = "it is longer than 33554432 bytes", "it has more than 400000 objects or 1500000 members"

// allocated is how many bytes f has allocated.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Whatever a Consul agent replies, the last upstreams stay, memory is bounded, and the trouble has a reason.
func TestAHostileConsul(t *testing.T) {
	for name, h := range map[string]hostile{
		"empty instances":    {"[", "{},", 0, tooMany, ""},
		"empty services":     {"[", `{"Service":{}},`, 0, tooMany, ""},
		"checks":             {strings.TrimSuffix(entries("a b"), "}]") + `,"Checks":[`, "{},", 1 << 17, "", "{}]}]"},
		"a long string":      {`[{"Node":{"Node":"`, "xxxxxxxx", 0, tooLong, ""},
		"a long address":     {`[{"Service":{"Address":"`, "xxxxxxxx", 0, tooLong, ""},
		"depth":              {"", `[`, 0, "exceeded max depth", ""},
		"depth, passed over": {`[{"Checks":`, `[`, 0, "exceeded max depth", ""},
		"meta":               {`[{"Service":{"Meta":{`, `"a":"b",`, 1 << 19, "unexpected EOF", ""},
		"no numbers":         {`[{"Service":{"Port":`, "1", 30, "cannot unmarshal number", "}}]"},
		"an endless failure": {"", "no ", -1, `status 500`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := scripted{index: "11", body: h.begin, endless: h.again}
				switch {
				case h.times > 0:
					bad.body, bad.endless = h.begin+strings.Repeat(h.again, h.times)+h.end, ""
				case h.times < 0:
					bad.status = 500
				}
				d := consulOf(t, &agent{replies: []scripted{list("10", "a b"), bad, {hang: true}}}, nil)
				assert.Less(t, allocated(func() { assert.Equal(t, "a b", sets(follow(t, d, 3*time.Second))) }), int64(small))
				if h.why == "" {
					assert.Empty(t, d.Status().Trouble)
					return
				}
				assert.Regexp(t, "^the Consul agent gives no reply: .*; 2 upstreams kept$", d.Status().Trouble)
				assert.Contains(t, d.Status().Trouble, h.why)
			})
		})
	}
}

// The same of a Kubernetes API, in a list and in a watch.
func TestAHostileKubernetes(t *testing.T) {
	const list, item = `{"kind":"EndpointSliceList","apiVersion":"v1","metadata":{"resourceVersion":"8"},"items":[`, `{"apiVersion":"v1","kind":"EndpointSlice","endpoints":[`
	for name, h := range map[string]hostile{
		"a long name":          {list + `{"metadata":{"name":"`, "xxxxxxxx", 0, tooLong, ""},
		"empty endpoints":      {list + item, "{},", 0, tooMany, ""},
		"managed fields":       {list + `{"metadata":{"managedFields":[`, "{},", 1 << 17, "", "{}]}}]}"},
		"many endpoints":       {list + item, "{},", 40_001, "its slices have 40003 endpoints, and at most 40000 are allowed", "{}]}]}"},
		"depth":                {list, `[`, 0, tooLong, ""},
		"an endless failure":   {`{"kind":"Status","message":"`, "no ", -1, "an error on the server", ""},
		"HTML":                 {"<html>", "<p>", 1, "invalid character '<'", ""},
		"a watch: one event":   {`{"type":"ADDED","object":` + item, "{},", 0, tooMany, ""},
		"a watch: unknown":     {"", `{"type":"FUNNY","object":{}}`, 0, "got invalid watch event type: FUNNY", ""},
		"a watch: no version":  {"", `{"type":"ADDED","object":{"apiVersion":"v1","kind":"EndpointSlice","metadata":{"name":"x"}}}`, 2, "", ""},
		"a watch: not objects": {"", `7 `, 0, "unable to decode an event", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, cfg := newAPIServer(t)
			a.slices = []object{slice("one", "5", "IPv4", endpoint("a", "10.0.0.1", "ready"))}
			k := &kubernetes{cfg: cfg}
			require.Equal(t, "10.0.0.1:9001", listed(t, k))
			if !strings.HasPrefix(name, "a watch") {
				k.version = "" // asks for a list
			}
			a.hostile = func(w http.ResponseWriter) {
				if h.times < 0 {
					w.WriteHeader(http.StatusInternalServerError)
				}
				from := io.Reader(&endless{text: h.again})
				if h.times > 0 {
					from = strings.NewReader(strings.Repeat(h.again, h.times) + h.end)
				}
				_, _ = io.Copy(w, io.MultiReader(strings.NewReader(h.begin), from)) // until the client has enough
			}
			assert.Less(t, allocated(func() {
				_, err := k.query(t.Context(), 0)
				if h.why == "" {
					assert.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, "the Kubernetes API gives no reply: ")
				if !strings.Contains(err.Error(), "deadline exceeded") { // on a slow machine
					assert.ErrorContains(t, err, h.why)
				}
			}), int64(small))
		})
	}
}
