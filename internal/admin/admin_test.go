package admin_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/selection"
)

// fakePool answers as told, and remembers what it was asked.
type fakePool struct {
	states []pool.State
	ranked []pool.Ranked
	err    error
	asked  pool.Request

	drained bool
}

func (p *fakePool) Drain(address string, on bool) bool {
	if address != "a:1" {
		return false
	}
	p.drained = on
	return true
}

func (p *fakePool) States() []pool.State { return p.states }

func (p *fakePool) Explain(r pool.Request) ([]pool.Ranked, error) {
	p.asked = r
	return p.ranked, p.err
}

// fakeQuality has seen one job of high priority.
type fakeQuality struct{}

func (fakeQuality) Summary() quality.Summary {
	return quality.Summary{Fleet: quality.Served{
		Status:  quality.Status{Mode: quality.Growing},
		Windows: []quality.Window{{Seconds: 60, High: quality.Figures{Jobs: 1, Complete: 1}}},
	}}
}

func TestQuality(t *testing.T) {
	var got map[string]any
	w := serve(t, config(&fakePool{}), http.MethodGet, "/api/quality")
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	fleet := got["fleet"].(map[string]any)
	assert.Equal(t, "growing", fleet["mode"])
	window := fleet["windows"].([]any)[0].(map[string]any)
	assert.Equal(t, 60.0, window["seconds"])
	assert.Equal(t, 1.0, window["high"].(map[string]any)["complete"])
}

func config(p *fakePool) admin.Config {
	return admin.Config{
		Metrics: http.NotFoundHandler(), Pool: p, Quality: fakeQuality{}, Console: &fakeConsole{},
		Ready:        func() error { return nil },
		BrowserCheck: func(h http.Handler) http.Handler { return h },
	}
}

func serve(t *testing.T, cfg admin.Config, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	h, err := admin.New(cfg)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestPick(t *testing.T) {
	for target, want := range map[string]pool.Request{
		"/api/pick":                             {Priority: selection.Low},
		"/api/pick?project=12345":               {Project: intake.Key("12345"), Priority: selection.Low},
		"/api/pick?project=a%26b&priority=high": {Project: intake.Key("a&b"), Priority: selection.High},
	} {
		p := &fakePool{ranked: []pool.Ranked{{Address: "a:1", Picked: true}, {Address: "b:1"}}}
		w := serve(t, config(p), http.MethodGet, target)
		require.Equal(t, http.StatusOK, w.Code, target)
		assert.Equal(t, want, p.asked)
		var got struct {
			Upstream string
			Ranking  []struct{ Address string }
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		assert.Equal(t, "a:1", got.Upstream)
		assert.Len(t, got.Ranking, 2)
	}
}

func TestPickRefusesNonsense(t *testing.T) {
	for query, want := range map[string]string{
		"priority=HIGH": `priority: "HIGH" is neither high nor low`,
		"project=a;b":   "invalid semicolon separator in query",
		"project=%zz":   `invalid URL escape "%zz"`,
	} {
		p := &fakePool{ranked: []pool.Ranked{{Address: "a:1"}}}
		w := serve(t, config(p), http.MethodGet, "/api/pick?"+query)
		assert.Equal(t, http.StatusBadRequest, w.Code, query)
		var got struct{ Error string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		assert.Equal(t, want, got.Error)
	}
	w := serve(t, config(&fakePool{err: pool.ErrEmpty}), http.MethodGet, "/api/pick")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.Contains(t, w.Body.String(), pool.ErrEmpty.Error())
	assert.Equal(t, http.StatusMethodNotAllowed, serve(t, config(&fakePool{}), http.MethodPost, "/api/pick").Code)
}

func TestProbes(t *testing.T) {
	cfg := config(&fakePool{states: []pool.State{{Upstream: pool.Upstream{Address: "a:1"}, Why: "draining"}}})
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodGet, "/readyz").Code)
	cfg.Ready = func() error { return errors.New("no upstreams") }
	w := serve(t, cfg, http.MethodGet, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "no upstreams\n", w.Body.String())
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodHead, "/healthz").Code)
	assert.Contains(t, serve(t, cfg, http.MethodGet, "/api/upstreams").Body.String(), `"why": "draining"`)
	assert.Equal(t, http.StatusNotFound, serve(t, cfg, http.MethodGet, "/debug/pprof/").Code)
	cfg.Pprof = func() bool { return true }
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodGet, "/debug/pprof/").Code)
}

// What cannot be shown is told, not an empty page that looks well.
func TestANumberThatJSONLacks(t *testing.T) {
	w := serve(t, config(&fakePool{states: []pool.State{{Rate: math.Inf(1)}}}), http.MethodGet, "/api/upstreams")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Contains(t, w.Body.String(), "unsupported value: +Inf")
}

func TestAllPathsAreChecked(t *testing.T) {
	cfg := config(&fakePool{})
	cfg.Pprof = func() bool { return true }
	cfg.BrowserCheck = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/api/upstreams", "/api/pick", "/api/quality", "/api/capacity", "/api/now", "/api/events", "/", "/page.js", "/debug/pprof/"} {
		assert.Equal(t, http.StatusForbidden, serve(t, cfg, http.MethodGet, path).Code, path)
	}
	_, err := admin.New(admin.Config{})
	assert.EqualError(t, err, "admin: Metrics, Pool, Quality, Console, Ready and BrowserCheck are required")
}
