package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"example.org/pilotfish/internal/settings"
)

// maxConsulReply bounds a reply, in bytes; an instance takes 1 to 2 kB.
const maxConsulReply = 32 << 20

// newConsulClient returns a client, and the address that it asks. A nil
// transport is one that connects.
func newConsulClient(cfg Consul, transport http.RoundTripper) (*api.Client, string, error) {
	conf := api.DefaultConfig() // reads the environment
	if cfg.Address != "" {
		conf.Address = cfg.Address
	}
	if cfg.TLS != (settings.TLS{}) {
		conf.Scheme = "https"
		conf.TLSConfig = api.TLSConfig{
			Address: cfg.TLS.ServerName, CAFile: cfg.TLS.CAFile,
			CertFile: cfg.TLS.CertFile, KeyFile: cfg.TLS.KeyFile,
		}
	}
	shown := conf.Address
	if transport == nil {
		t, err := newConsulTransport(conf)
		if err != nil {
			return nil, "", err
		}
		transport = t
	}
	conf.HttpClient = &http.Client{
		Transport: bounded{transport},
		// A redirect would send the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client, err := api.NewClient(conf)
	if err != nil {
		return nil, "", err
	}
	return client, shown, nil
}

// newConsulTransport connects anew for each query: there is at most about one a
// second, usually one a minute, and a kept connection would outlive an agent that
// moved. It takes the unix scheme out of conf's address, because the api would
// replace the transport.
func newConsulTransport(conf *api.Config) (*http.Transport, error) {
	tls, err := api.SetupTLSConfig(&conf.TLSConfig)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        tls,
		TLSHandshakeTimeout:    3 * time.Second,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if path, ok := strings.CutPrefix(conf.Address, "unix://"); ok {
		conf.Address = "localhost"
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
	}
	return t, nil
}

// bounded is a transport whose replies end in an error beyond maxConsulReply.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxConsulReply)
	}
	return resp, err
}

// brief says in one log line why there is no reply.
func brief(err error) error {
	var status api.StatusError
	if errors.As(err, &status) {
		return fmt.Errorf("status %d: %s", status.Code, quote(strings.TrimSpace(status.Body)))
	}
	var bound *http.MaxBytesError
	if errors.As(err, &bound) {
		return fmt.Errorf("the reply is longer than %d bytes", bound.Limit)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the reply is cut short: %w", err)
	}
	return err
}
