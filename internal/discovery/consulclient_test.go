package discovery

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/loopback"
)

// sayRules replies as an agent with two instances does.
func sayRules(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Consul-Index", "10")
	w.Header().Set("X-Consul-LastContact", "0")
	w.Header().Set("X-Consul-KnownLeader", "true")
	_, _ = w.Write([]byte(entries("a b"))) // a lost reply fails the test by itself
}

// askOnce asks an agent for one reply.
func askOnce(t *testing.T, c Consul) (reply, error) {
	t.Helper()
	c.Service = "rules"
	from, err := c.open(new(Config))
	require.NoError(t, err)
	return from.source.ask(context.Background(), 0)
}

func TestConsulAddressFromTheEnvironment(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Consul-Token") != "from-env" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		sayRules(w, r)
	}))
	defer server.Close()
	t.Setenv("CONSUL_HTTP_ADDR", server.URL)
	t.Setenv("CONSUL_HTTP_TOKEN", "from-env")
	a, err := askOnce(t, Consul{})
	require.NoError(t, err)
	assert.Equal(t, "a b", names(a.upstreams))
}

// Consul's own variables say how to reach the agent by TLS.
func TestConsulOverHTTPS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(sayRules))
	defer server.Close()
	_, err := askOnce(t, Consul{Address: server.URL})
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	t.Setenv("CONSUL_CACERT", ca)
	a, err := askOnce(t, Consul{Address: server.URL})
	require.NoError(t, err)
	assert.Equal(t, "a b", names(a.upstreams))
	t.Setenv("CONSUL_CACERT", ca+".gone")
	_, err = (&Consul{Address: server.URL, Service: "rules"}).open(new(Config))
	assert.ErrorContains(t, err, "no such file")
}

func TestConsulOverAUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(sayRules)}
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()
	a, err := askOnce(t, Consul{Address: "unix://" + path})
	require.NoError(t, err)
	assert.Equal(t, "a b", names(a.upstreams))
	require.NoError(t, server.Close())
	assert.ErrorIs(t, <-ended, http.ErrServerClosed)
}

func TestConsulCutShort(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Consul-KnownLeader", "true")
		w.Header().Set("Content-Length", "4096")
		_, _ = w.Write([]byte(entries("a b")[:60])) // the rest never comes
	}))
	defer server.Close()
	_, err := askOnce(t, Consul{Address: server.URL})
	assert.EqualError(t, err, "the Consul agent gives no reply: unexpected EOF")
}

func TestConsulDown(t *testing.T) {
	address, err := loopback.Reserve()
	require.NoError(t, err)
	_, err = askOnce(t, Consul{Address: address})
	assert.ErrorContains(t, err, "connection refused")
}
