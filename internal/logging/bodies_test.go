package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

func TestBodiesAreWrittenForTheOwnerAndBounded(t *testing.T) {
	require.Nil(t, NewBodies(Default(), nil), "they are off by default")
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, bodiesName)
	var faults []error
	open := func(size int) *Bodies {
		set := Default()
		set.Bodies, set.BodiesSize = dir, settings.Size(size)
		return NewBodies(set, func(err error) { faults = append(faults, err) })
	}
	b := open(300)
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"secret"}}
	for range 2 {
		b.Record(&record.Job{ID: "a", Method: "POST", Path: "/v1/jobs"}, header, []byte("\x00{}"))
		require.NoError(t, b.Sync())
	}
	require.Empty(t, faults)
	b.Record(&record.Job{ID: "b"}, header, make([]byte, 200))
	require.NoError(t, b.Sync())
	require.Len(t, faults, 1)
	assert.ErrorContains(t, faults[0], path+" has reached log.bodies_size, 300 bytes")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	require.Len(t, lines, 2)
	var got Body
	require.NoError(t, json.Unmarshal(lines[1], &got))
	assert.Equal(t, Body{ID: "a", Method: "POST", Path: "/v1/jobs", Type: "application/json", Body: []byte("\x00{}")}, got)
	assert.NotContains(t, string(text), "secret")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	again := open(300)
	again.Record(&record.Job{ID: "c"}, nil, make([]byte, 100))
	require.NoError(t, again.Sync())
	assert.Len(t, faults, 2, "what was there counts")
	dir = filepath.Join(path, "x") // below a file
	blocked := open(300)
	blocked.Record(&record.Job{}, nil, nil)
	require.NoError(t, blocked.Sync())
	assert.True(t, len(faults) == 3 && !errors.Is(faults[2], os.ErrNotExist), "%v", faults)
}
