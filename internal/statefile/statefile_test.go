package statefile

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// keeper is a pool as a Learner.
type keeper struct{ *pool.Pool }

func (k keeper) Restore(l pool.Learned) error { return k.Pool.Restore(time.Now(), l) }

func learner(t *testing.T) Learner {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	breakers, err := breaker.New(breaker.Config{Settings: breaker.Default(), Rand: rng})
	require.NoError(t, err)
	p, err := pool.New(pool.Config{
		Settings: pool.Settings{Policy: selection.Random{}, Interval: time.Second, Detector: func() overload.Detector { return overload.None{} }},
		Breakers: breakers, Rand: rng,
	})
	require.NoError(t, err)
	return keeper{p}
}

// A state file that cannot be used is told and changes nothing; one that can is used.
func TestStateFilesThatAreIgnored(t *testing.T) {
	now := time.Now()
	set := Settings{Path: filepath.Join(t.TempDir(), "state.json"), MaxAge: time.Hour}
	learner := learner(t)
	require.NoError(t, write(set.Path, now, learner.Learned()))
	whole, err := os.ReadFile(set.Path)
	require.NoError(t, err)
	for fault, spoil := range map[string]func(string) string{
		"more than state.max_age":          func(s string) string { return strings.Replace(s, `"saved_at":"20`, `"saved_at":"19`, 1) },
		"written in the future":            func(s string) string { return strings.Replace(s, `"saved_at":"20`, `"saved_at":"21`, 1) },
		"it is of version 2, not 1":        func(s string) string { return strings.Replace(s, `"version":1`, `"version":2`, 1) },
		"its checksum is wrong":            func(s string) string { return strings.Replace(s, `"startup":0.1`, `"startup":0.2`, 1) },
		"it is damaged: unexpected end":    func(s string) string { return s[:len(s)/2] },
		"it is damaged: invalid character": func(string) string { return "\x00\x01" },
		"is longer than":                   func(string) string { return strings.Repeat(" ", maxBytes+1) },
		"not one that can have been learned": func(string) string {
			require.NoError(t, write(set.Path, now, pool.Learned{}))
			text, err := os.ReadFile(set.Path)
			require.NoError(t, err)
			return string(text)
		},
	} {
		require.NoError(t, os.WriteFile(set.Path, []byte(spoil(string(whole))), 0o600))
		core, logs := observer.New(zap.DebugLevel)
		Restore(set, learner, zap.New(core))
		told := logs.FilterMessageSnippet("the state file is ignored").All()
		if assert.Len(t, told, 1, fault) {
			assert.Contains(t, told[0].ContextMap()["error"], fault)
		}
	}
}

// What was learned is written each minute and at the end, wherever the file is then. A
// failure is told once, and again after a success.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		folder := t.TempDir()
		good, bad := filepath.Join(folder, "state.json"), filepath.Join(folder, "none", "state.json")
		var path atomic.Value
		path.Store("")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		learned := learner(t)
		go Keep(ctx, func() string { return path.Load().(string) }, learned, zap.New(core))
		after := func(p string, minutes int) (failures int) {
			path.Store(p)
			time.Sleep(time.Duration(minutes) * time.Minute)
			synctest.Wait()
			return len(logs.TakeAll())
		}
		assert.Zero(t, after("", 2))
		assert.Equal(t, 1, after(bad, 3))
		assert.Zero(t, after(good, 1))
		require.FileExists(t, good)
		assert.Equal(t, 1, after(bad, 2))
		require.NoError(t, os.Remove(good))
		path.Store(good)
		cancel()
		synctest.Wait()
		assert.FileExists(t, good)
	})
}

func TestAnAgeMustBePositive(t *testing.T) {
	var f settings.Faults
	Default().Check(f.In("state"))
	require.NoError(t, f.Err())
	Settings{}.Check(f.In("state"))
	assert.EqualError(t, f.Err(), "state.max_age: 0s must be positive")
}
