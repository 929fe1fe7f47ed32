package admin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// Landings are a bounded, even sample of the jobs that needed data. Holdings are bounded, too: the projects used last.
func TestLandings(t *testing.T) {
	var l admin.Landings
	now := time.Now()
	end := func(project string, data *intake.Parts, attempts ...record.Attempt) {
		l.Ended(now, &record.Job{
			Facts: intake.Facts{Project: project, Key: intake.Key(project), Data: data}, Completeness: intake.Complete, Total: time.Second, Attempts: attempts,
		})
		now = now.Add(20 * time.Millisecond)
	}
	at := func(address string, c selection.Cache, o pool.Outcome) record.Attempt {
		return record.Attempt{Upstream: address, Cache: c, Outcome: o}
	}
	end("", nil, at("a:1", selection.NotCached, pool.Answered))
	end("7", nil, at("a:1", selection.NotCached, pool.Moved), at("b:1", selection.NotCached, pool.Answered))
	end("too soon", nil, at("a:1", selection.Cached, pool.Answered))
	end("8", nil, at("a:1", selection.NotCached, pool.Refused), at("b:1", selection.Cached, pool.Answered))
	assert.Equal(t, []admin.Landing{
		{Number: 1, Project: "7", Upstream: "b:1", Seconds: 1, From: "a:1", Moved: true},
		{Number: 2, Project: "8", Upstream: "b:1", Found: true, Seconds: 1, From: "a:1"},
	}, l.Last())
	assert.Equal(t, []admin.Holding{{Project: "8", Upstreams: []string{"b:1"}}}, l.Holdings(map[uint64][]string{intake.Key("8"): {"b:1"}}))
	for i := range 500 {
		end("7", nil, at("a:1", selection.Cached, pool.Answered))
		end(fmt.Sprint("p", i), nil, at("a:1", selection.Cached, pool.Answered))
		end(fmt.Sprint("prompt", i), &intake.Parts{}, at("a:1", selection.Cached, pool.Answered))
	}
	last := l.Last()
	assert.Len(t, last, 64)
	assert.Equal(t, last[0].Number+63, last[63].Number)
	keys := l.Keys()
	assert.Len(t, keys, 32)
	assert.Contains(t, keys, intake.Key("7"))
	assert.NotContains(t, keys, intake.Key("p1"))
}
