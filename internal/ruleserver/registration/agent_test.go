package registration

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeAgent is as much of a Consul agent as a registration asks. It is the
// transport to itself.
type fakeAgent struct {
	mu       sync.Mutex
	services map[string]api.AgentServiceRegistration
	down     bool // refuses connections
	status   int  // of every answer, when not 0
	hangs    bool // never answers
	looks    int
	puts     int
}

func (a *fakeAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.hangs:
		a.mu.Unlock()
		<-r.Context().Done()
		a.mu.Lock()
		return nil, r.Context().Err()
	case a.down:
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	a.serve(w, r)
	return w.Result(), nil
}

func (a *fakeAgent) serve(w http.ResponseWriter, r *http.Request) {
	if a.status != 0 {
		w.WriteHeader(a.status)
		return
	}
	id, isLook := strings.CutPrefix(r.URL.Path, "/v1/agent/service/")
	gone, isLeave := strings.CutPrefix(r.URL.Path, "/v1/agent/service/deregister/")
	switch {
	case r.URL.Path == "/v1/agent/service/register":
		var s api.AgentServiceRegistration
		if text, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(text, &s) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a.puts++
		a.services[s.ID] = s
	case isLeave:
		if _, ok := a.services[gone]; !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		delete(a.services, gone)
	case isLook:
		a.looks++
		s, ok := a.services[id]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(api.AgentService{ID: s.ID, Service: s.Name, Address: s.Address, Port: s.Port, Meta: s.Meta})
	default:
		w.WriteHeader(http.StatusTeapot)
	}
}

// change changes the agent between two requests.
func (a *fakeAgent) change(f func(*fakeAgent)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

// has is what the agent knows of the server at 10.0.0.1:9001.
func (a *fakeAgent) has(t *testing.T) api.AgentServiceRegistration {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Contains(t, a.services, "rules-10.0.0.1:9001")
	return a.services["rules-10.0.0.1:9001"]
}

func (a *fakeAgent) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.services) == 0
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// example is a configuration for an agent that knows nothing.
func example() (*fakeAgent, Config) {
	a := &fakeAgent{services: map[string]api.AgentServiceRegistration{}}
	return a, Config{
		Settings: Settings{Consul: "consul.test:8500", Service: "rules", CheckInterval: time.Second, DeregisterAfter: time.Minute},
		Address:  "10.0.0.1:9001", Cores: 16, StartedAt: epoch, Preemptible: true, StopsAt: epoch.Add(24 * time.Hour),
		Transport: a,
	}
}
