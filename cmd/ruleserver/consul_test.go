package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
)

// scriptedConsul is an agent that says yes to everything, and writes it down:
// "+" for a server that takes jobs, "~" for one that drains, "-" for one that left.
type scriptedConsul struct {
	registered chan struct{}

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
		if c.last.ID == "" {
			close(c.registered)
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
	c := &scriptedConsul{registered: make(chan struct{})}
	agent := httptest.NewServer(c)
	t.Cleanup(agent.Close)
	s := start(t, examples, append([]string{"--consul=" + agent.Listener.Addr().String(), "--service=rules", "--cores=3", "--tell-within=1h"}, args...)...)
	<-c.registered
	return s, c
}

func TestRegistersDrainsAndLeaves(t *testing.T) {
	s, c := startRegistered(t)
	terminate(t)
	assert.Zero(t, <-s.exited, s.log)
	log, last := c.wrote()
	assert.Equal(t, "+~-", log)
	assert.Equal(t, "rules", last.Name)
	assert.Equal(t, strings.TrimPrefix(s.url, "http://"), strings.TrimPrefix(last.ID, "rules-"))
	assert.Equal(t, "3", last.Meta["cores"])
	assert.Equal(t, "false", last.Meta["preemptible"])
	assert.NotContains(t, last.Meta, "stops_at")
}

func TestPreemptibleTellsItsEnd(t *testing.T) {
	s, c := startRegistered(t, "--preemptible", "--lifetime=5h", "--notice=1h")
	_, first := c.wrote()
	begun, err := time.Parse(time.RFC3339, first.Meta["started_at"])
	require.NoError(t, err)
	assert.Equal(t, begun.Add(5*time.Hour).Format(time.RFC3339), first.Meta["stops_at"])

	stopsAt := preempt(t, s.url)
	until(t, s.url+"/healthz", "draining")
	assert.Equal(t, stopsAt, preempt(t, s.url), "the first notice stands")
	job, err := post(t, s.url)
	require.NoError(t, err)
	job.Body.Close()
	assert.Equal(t, "no", job.Header.Get("Job-Started"))
	log, last := c.wrote()
	assert.Equal(t, stopsAt, last.Meta["stops_at"])
	assert.Equal(t, "+~", log)

	terminate(t) // nothing runs, so there is nothing to wait for
	assert.Zero(t, <-s.exited, s.log)
	log, _ = c.wrote()
	assert.Equal(t, "+~-", log)
}

// preempt gives notice, and returns when it ends.
func preempt(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Post(url+"/v1/preempt", "", nil)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusAccepted, response.StatusCode)
	var told struct {
		StopsAt string `json:"stops_at"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&told))
	return told.StopsAt
}

func TestNoticeEnds(t *testing.T) {
	s := start(t, examples, "--preemptible", "--notice=10ms")
	preempt(t, s.url)
	assert.Zero(t, <-s.exited, s.log)

	s = start(t, examples, "--preemptible", "--notice=10ms", "--cost=output=1h")
	cut := runJob(t, s)
	preempt(t, s.url)
	assert.Equal(t, cli.Fault, <-s.exited)
	cut()
	assert.Contains(t, s.log.String(), "jobs were still running at the end of the notice, and were cut")
}

func TestWhoMayGiveNotice(t *testing.T) {
	server, err := ruleserver.New(ruleserver.Config{Settings: ruleserver.Defaults(), Feeds: example.AnyFeeds()})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	for from, status := range map[string]int{"[::1]:1234": http.StatusAccepted, "192.0.2.1:1234": http.StatusForbidden} {
		p := newPreemption(time.Hour)
		r := httptest.NewRequest("POST", "/v1/preempt", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		(&flags{Preemptible: true}).handler(server, p).ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, from)
		assert.Equal(t, status == http.StatusAccepted, len(p.given) == 1, from)
	}

	s := start(t, examples)
	response, err := http.Post(s.url+"/v1/preempt", "", nil)
	require.NoError(t, err)
	response.Body.Close()
	assert.Equal(t, http.StatusNotFound, response.StatusCode, "it is for servers that may be pre-empted")
	terminate(t)
	assert.Zero(t, <-s.exited, s.log)
}
