package discovery

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Defaults of ConsulConfig.
const (
	DefaultConsulWait    = time.Minute
	DefaultConsulTimeout = 5 * time.Second
	// maxConsulWait is the longest that an agent lets a query block.
	maxConsulWait = 10 * time.Minute
)

// ConsulConfig says which instances of which service are the upstreams. What is left
// empty comes from Consul's own CONSUL_* environment variables, if they are set.
type ConsulConfig struct {
	// Address is the agent's: host:port, or a URL with http, https or unix; default 127.0.0.1:8500.
	Address string
	// Service is the service's name.
	Service string
	// Tag, if not empty, must be among the instance's tags.
	Tag string
	// Datacenter and Namespace are the agent's own when empty.
	Datacenter, Namespace string
	// TokenFile holds the ACL token. It is read before every query.
	TokenFile string
	// TLS is for an agent that is reached by https.
	TLS TLSConfig
	// Stale lets any Consul server answer, not only the leader.
	Stale bool
	// Wait is how long a query may wait for a change; default 1 min, 1 s to 10 min.
	Wait time.Duration
	// Timeout is how long an answer may take beyond Wait; default 5 s.
	Timeout time.Duration
	// Transport carries the queries; nil is a plain transport without proxy.
	Transport http.RoundTripper
}

// TLSConfig is how to reach an agent by https. Each of the files is optional.
type TLSConfig struct {
	// CAFile has the certificates to trust; the system's when empty.
	CAFile string
	// CertFile and KeyFile are for an agent that wants to know who asks.
	CertFile, KeyFile string
	// ServerName is expected in the agent's certificate; the address's host when empty.
	ServerName string
}

func (c ConsulConfig) withDefaults() (ConsulConfig, error) {
	if c.Wait == 0 {
		c.Wait = DefaultConsulWait
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultConsulTimeout
	}
	scheme, _, hasScheme := strings.Cut(c.Address, "://")
	switch {
	case c.Service == "":
		return c, errors.New("consul: want a service")
	case strings.ContainsAny(c.Service, "/?#"):
		return c, fmt.Errorf("consul: service %s: want a name without / ? #", quote(c.Service))
	case hasScheme && scheme != "http" && scheme != "https" && scheme != "unix":
		return c, fmt.Errorf("consul: address %s: want http, https or unix", quote(c.Address))
	case c.TLS != TLSConfig{} && hasScheme && scheme != "https":
		return c, fmt.Errorf("consul: address %s: tls needs https", quote(c.Address))
	case (c.TLS.CertFile == "") != (c.TLS.KeyFile == ""):
		return c, errors.New("consul: tls: a certificate needs a key, and a key a certificate")
	case c.Wait < time.Second || c.Wait > maxConsulWait:
		return c, fmt.Errorf("consul: a wait of %s: want 1s to %s", c.Wait, maxConsulWait)
	case c.Timeout < 0:
		return c, fmt.Errorf("consul: a timeout of %s: want a positive duration", c.Timeout)
	}
	return c, nil
}
