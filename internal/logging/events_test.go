package logging

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// What the log says of the sidecar and its upstreams is kept, also what its level leaves out; what libraries say is not.
func TestEvents(t *testing.T) {
	log, err := New(io.Discard, "error")
	require.NoError(t, err)
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprint("u:", i)
	}
	log.Info("upstreams joined", zap.Strings("upstreams", many))
	log.Debug("too small to see")
	log.Quiet.Warn("http: a handshake failed")
	one := log.With(zap.String("upstream", "a:1"))
	for range 3 {
		one.Warn("the upstream is down: jobs go elsewhere", zap.String("cause", "connection refused"))
	}
	one.Info("the upstream is up again")
	log.Error("the configuration was not reloaded", zap.Error(errors.New("no such key")))
	events, all := log.Events.Last()
	assert.Equal(t, 6, all)
	for i := range events {
		assert.WithinDuration(t, time.Now(), events[i].At, time.Minute)
		events[i].At = time.Time{}
	}
	assert.Equal(t, []Event{
		{Times: 1, Level: "error", Text: "the configuration was not reloaded", Cause: "no such key"},
		{Times: 1, Level: "info", Text: "the upstream is up again", Upstreams: []string{"a:1"}},
		{Times: 3, Level: "warn", Text: "the upstream is down: jobs go elsewhere", Cause: "connection refused", Upstreams: []string{"a:1"}},
		{Times: 1, Level: "info", Text: "upstreams joined", Upstreams: []string{"u:0", "u:1", "u:2", "u:3", "u:4"}, MoreUpstreams: 195},
	}, events)
	for i := range 3 * keptEvents {
		log.Info(fmt.Sprint("event ", i))
	}
	events, _ = log.Events.Last()
	assert.Len(t, events, keptEvents)
	assert.Equal(t, "event 299", events[0].Text)
}
