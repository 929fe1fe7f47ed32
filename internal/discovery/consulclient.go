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
)

const (
	// maxConsulAnswer bounds an answer, in bytes; an instance takes 1 to 2 kB.
	maxConsulAnswer = 32 << 20
	// maxToken bounds the token file, in bytes.
	maxToken = 4 << 10
)

// newConsulClient returns a client, and the address that it asks.
func newConsulClient(cfg ConsulConfig) (*api.Client, string, error) {
	conf := api.DefaultConfig() // reads the environment
	if cfg.Address != "" {
		conf.Address = cfg.Address
	}
	if cfg.TLS != (TLSConfig{}) {
		conf.Scheme = "https"
		conf.TLSConfig = api.TLSConfig{
			Address: cfg.TLS.ServerName, CAFile: cfg.TLS.CAFile,
			CertFile: cfg.TLS.CertFile, KeyFile: cfg.TLS.KeyFile,
		}
	}
	shown := conf.Address
	transport := cfg.Transport
	if transport == nil {
		t, err := newConsulTransport(conf)
		if err != nil {
			return nil, "", err
		}
		transport = t
	}
	conf.HttpClient = &http.Client{
		Transport: bounded{transport},
		// A redirect would take the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client, err := api.NewClient(conf)
	if err != nil {
		return nil, "", err
	}
	return client, shown, nil
}

// newConsulTransport connects anew for each query: there is at most about one a
// second, usually one a minute, and a kept connection would outlive an agent that moved. It
// takes the unix scheme out of conf's address, because the api would bring its own transport.
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

// bounded is a transport whose answers end in an error beyond maxConsulAnswer.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxConsulAnswer)
	}
	return resp, err
}

// readToken reads the ACL token. It is read each time rather than when its
// file changes, because an agent that rotates tokens may do so under the same time and size.
func readToken(path string) (string, error) {
	data, err := readBounded(path, maxToken)
	if err != nil {
		return "", fmt.Errorf("read consul token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("read consul token: %s is empty", path)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r < '!' || r > '~' }) {
		return "", fmt.Errorf("read consul token: %s: want one word of plain ASCII", path)
	}
	return token, nil
}

// brief cuts an agent's error page down to what a log line can hold.
func brief(err error) error {
	var status api.StatusError
	if errors.As(err, &status) {
		return fmt.Errorf("status %d: %s", status.Code, quote(strings.TrimSpace(status.Body)))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the answer is cut short: %w", err)
	}
	return err
}
