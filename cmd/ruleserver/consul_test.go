package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
)

// scriptedConsul is an agent that says yes to everything, and writes it down:
// "+" for a server that takes jobs, "~" for one that drains, "-" for one that left.
type scriptedConsul struct {
	registered chan struct{} // gets each registration that takes jobs

	mu   sync.Mutex
	log  string
	last api.AgentServiceRegistration
}

func (c *scriptedConsul) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.URL.Path == "/v1/agent/service/register":
		var s api.AgentServiceRegistration
		if json.NewDecoder(r.Body).Decode(&s) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if s.Meta["draining"] == "false" {
			c.registered <- struct{}{}
		}
		c.last = s
		c.log += map[string]string{"false": "+", "true": "~"}[s.Meta["draining"]]
	case strings.HasPrefix(r.URL.Path, "/v1/agent/service/deregister/"):
		c.log += "-"
	case c.last.ID == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(api.AgentService{Service: c.last.Name, Address: c.last.Address, Port: c.last.Port, Meta: c.last.Meta})
	}
}

// wrote is what was written down, and the last registration.
func (c *scriptedConsul) wrote() (string, api.AgentServiceRegistration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log, c.last
}

// startRegistered starts a server that has registered.
func startRegistered(t *testing.T, args ...string) (started, *scriptedConsul) {
	c := &scriptedConsul{registered: make(chan struct{}, 10)}
	agent := httptest.NewServer(c)
	t.Cleanup(agent.Close)
	s := start(t, examples, append([]string{"--consul=" + agent.Listener.Addr().String(), "--service=rules", "--cores=3"}, args...)...)
	<-c.registered
	return s, c
}

func TestRegistersDrainsAndLeaves(t *testing.T) {
	s, c := startRegistered(t)
	_, first := c.wrote()
	assert.Equal(t, "rules", first.Name)
	assert.Equal(t, strings.TrimPrefix(s.url, "http://"), strings.TrimPrefix(first.ID, "rules-"))
	assert.Equal(t, "127.0.0.1", first.Address)
	assert.Equal(t, s.url+"/healthz", first.Check.HTTP)
	assert.Equal(t, "3", first.Meta["cores"])

	c.mu.Lock()
	c.last = api.AgentServiceRegistration{} // it forgets
	c.mu.Unlock()
	<-c.registered
	terminate(t)
	assert.Zero(t, <-s.exited, s.log)
	log, last := c.wrote()
	assert.Equal(t, "++~-", log, "what the agent knows is not registered again")
	assert.Equal(t, s.url+"/livez", last.Check.HTTP, "it is in the catalogue for as long as it is there")
}
