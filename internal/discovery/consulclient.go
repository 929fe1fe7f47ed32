package discovery

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

// newConsulClient returns a client of the agent at an address, or with "" of that of the
// environment, and which that is. A nil transport is one that connects.
func newConsulClient(address string, transport http.RoundTripper) (*api.Client, string, error) {
	conf := api.DefaultConfig() // reads the environment
	if address != "" {
		conf.Address = address
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
	return client, shown, err
}

// newConsulTransport connects anew for each query: there is at most about one a
// second, usually one a minute, and a kept connection would outlive an agent that
// moved. It takes the unix scheme out of conf's address, because the api would
// replace the transport.
func newConsulTransport(conf *api.Config) (*http.Transport, error) {
	tls, err := api.SetupTLSConfig(&conf.TLSConfig)
	if err != nil {
		return nil, err
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
