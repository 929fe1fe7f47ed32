package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// What libraries log becomes lines of this log, and no text of theirs a field of it.
func TestLibraries(t *testing.T) {
	old, flags, to := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() { slog.SetDefault(old); log.SetFlags(flags); log.SetOutput(to) })
	l, lines := read(t)
	l.CaptureLibraries()
	log.Print("http: unsolicited response")
	slog.With("a", 1).WithGroup("g").Warn("invalid limit", "msg", "forged", "level", "debug")
	slog.Error("failed")
	slog.Info("started")
	got := lines()
	want := []map[string]any{
		{"level": "warn", "msg": "http: unsolicited response"},
		{"level": "warn", "msg": "invalid limit", "details": "a=1 g.msg=forged g.level=debug"},
		{"level": "error", "msg": "failed"}, {"level": "info", "msg": "started"},
	}
	for _, line := range got {
		delete(line, "ts")
	}
	assert.Equal(t, want, got)
}

// No line is longer than its bounds, whoever chooses its texts.
func TestLinesAreBounded(t *testing.T) {
	var out bytes.Buffer
	l, err := New(&out, "info")
	require.NoError(t, err)
	long := strings.Repeat("é", 1000)
	l.With(zap.String("a", long)).Info(long, zap.Error(errors.New(long)), zap.NamedError("none", nil),
		zap.Strings("upstreams", slices.Repeat([]string{"10.0.0.1:80"}, 10_000)))
	require.NoError(t, l.Sync())
	assert.Less(t, out.Len(), 8<<10)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	assert.Equal(t, strings.Repeat("é", 254)+"...", line["error"])
	assert.Len(t, line["upstreams"], 100)
	assert.EqualValues(t, 10_000, line["upstreams_total"])
}
