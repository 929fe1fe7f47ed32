package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeAgent is a Consul agent that records the registration of one service.
type fakeAgent struct {
	mu         sync.Mutex
	registered int
	known      bool
	service    struct {
		ID, Name, Address string
		Port              int
		Meta              map[string]string
	}
	check struct{ Status, Output string }
}

func (a *fakeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.URL.Path == "/v1/agent/service/register":
		a.known, a.registered = json.NewDecoder(r.Body).Decode(&a.service) == nil, a.registered+1
	case strings.HasPrefix(r.URL.Path, "/v1/agent/check/update/") && !a.known:
		http.Error(w, "Unknown check", http.StatusNotFound)
	case strings.HasPrefix(r.URL.Path, "/v1/agent/check/update/"):
		_ = json.NewDecoder(r.Body).Decode(&a.check)
	case strings.HasPrefix(r.URL.Path, "/v1/agent/service/deregister/"):
		a.known = false
	}
}

// is waits until the agent is in a state.
func (a *fakeAgent) is(t *testing.T, what string, state func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return state()
	}, time.Minute, 10*time.Millisecond, what)
}

// A server registers itself with its address, cores and lifetime, and again after the agent has lost the registration. It
// deregisters when it exits.
func TestRegistrationInConsul(t *testing.T) {
	a := &fakeAgent{}
	web := httptest.NewServer(a)
	defer web.Close()
	s := start(t, examples, "--consul="+strings.TrimPrefix(web.URL, "http://"), "--consul-service=rules", "--lifetime=24h", "--cores=3")
	a.is(t, "registered", func() bool { return a.check.Status == "passing" })
	assert.Equal(t, "rules", a.service.Name)
	assert.Equal(t, s.url, "http://"+strings.TrimPrefix(a.service.ID, "rules-"))
	assert.Equal(t, "3", a.service.Meta["cores"])
	assert.Equal(t, "true", a.service.Meta["preemptible"])
	stops, err := time.Parse(time.RFC3339, a.service.Meta["stops_at"])
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(24*time.Hour), stops, time.Hour)

	a.mu.Lock()
	a.known = false
	a.mu.Unlock()
	a.is(t, "registered again", func() bool { return a.registered == 2 })
	terminate(t)
	assert.Zero(t, <-s.exited)
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.False(t, a.known, "the server did not deregister")
}
