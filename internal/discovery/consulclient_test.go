package discovery

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/loopback"
	"example.org/pilotfish/internal/settings"
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
	from, err := newConsul(c, nil)
	require.NoError(t, err)
	return from.source.ask(context.Background(), 0)
}

func TestConsulOverHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(sayRules))
	defer server.Close()
	for _, address := range []string{server.URL, strings.TrimPrefix(server.URL, "http://")} {
		a, err := askOnce(t, Consul{Address: address})
		require.NoError(t, err)
		assert.Equal(t, "a b", names(a.upstreams))
	}
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

func TestConsulOverHTTPS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(sayRules))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))

	a, err := askOnce(t, Consul{Address: server.URL, TLS: settings.TLS{CAFile: ca, ServerName: "example.com"}})
	require.NoError(t, err)
	assert.Equal(t, "a b", names(a.upstreams))

	a, err = askOnce(t, Consul{Address: strings.TrimPrefix(server.URL, "https://"), TLS: settings.TLS{CAFile: ca}})
	require.NoError(t, err, "tls means https")
	assert.Equal(t, "a b", names(a.upstreams))

	_, err = askOnce(t, Consul{Address: server.URL, TLS: settings.TLS{CAFile: ca, ServerName: "other.test"}})
	assert.ErrorContains(t, err, "certificate is valid for")
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

// In a bubble, because reading so much takes long on a busy machine.
func TestConsulRepliesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []scripted{{index: "10", body: strings.Repeat(" ", maxConsulReply) + entries("a b")}}}
		d := consulOf(t, a, nil)
		assert.Empty(t, follow(t, d, time.Second))
		assert.EqualError(t, d.Status().Err, "ask consul: the reply is longer than 33554432 bytes")
	})
}

func TestConsulCutShort(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Consul-KnownLeader", "true")
		w.Header().Set("Content-Length", "4096")
		_, _ = w.Write([]byte(entries("a b")[:60])) // the rest never comes
	}))
	defer server.Close()
	_, err := askOnce(t, Consul{Address: server.URL})
	assert.EqualError(t, err, "ask consul: the reply is cut short: unexpected EOF")
}

func TestConsulDown(t *testing.T) {
	address, err := loopback.Reserve()
	require.NoError(t, err)
	_, err = askOnce(t, Consul{Address: address})
	assert.ErrorContains(t, err, "ask consul: ")
	assert.ErrorContains(t, err, "connection refused")
}
