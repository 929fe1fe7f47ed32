package registration

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Defaults of Config.
const (
	DefaultInterval        = time.Second
	DefaultDeregisterAfter = time.Minute
	DefaultEvery           = 3 * time.Second
	DefaultTimeout         = 2 * time.Second
)

// Config says who is registered, and where.
type Config struct {
	// Agent is the Consul agent's address: host:port, or a URL with http, https or
	// unix. A token and TLS come from Consul's own CONSUL_* environment variables.
	Agent string
	// Service is the service's name.
	Service string
	// Address is host:port, where the server takes jobs. An empty or unspecified
	// host stands for the address of the agent's node.
	Address string

	// Cores is how many joblets run at the same time.
	Cores int
	// StartedAt is when the server came up.
	StartedAt time.Time
	// Preemptible says that the server lives on borrowed time, and StopsAt until when.
	Preemptible bool
	StopsAt     time.Time

	// Interval is from one health check to the next, which is also how long the
	// agent waits for one's answer, if that is over a second; default 1 s.
	Interval time.Duration
	// DeregisterAfter is how long checks may fail before the agent forgets the
	// server; default 1 min, which is the least that an agent keeps to.
	DeregisterAfter time.Duration
	// Every is from one look at the registration to the next, and bounds the pause
	// after failures; default 3 s.
	Every time.Duration
	// Timeout is how long an agent may take to answer; default 2 s.
	Timeout time.Duration

	// Observe is told what became of the registration: nil when it was made, anew or
	// changed, and why it could not be looked at or made. It must not block. Nil observes nothing.
	Observe func(error)
	// Transport carries the requests; nil is a plain one.
	Transport http.RoundTripper
}

// withDefaults fills what is zero and refuses nonsense. host and port are Address's.
func (c Config) withDefaults() (_ Config, host string, port int, err error) {
	c.Interval = cmp.Or(c.Interval, DefaultInterval)
	c.DeregisterAfter = cmp.Or(c.DeregisterAfter, DefaultDeregisterAfter)
	c.Every = cmp.Or(c.Every, DefaultEvery)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.Observe == nil {
		c.Observe = func(error) {}
	}
	host, text, err := net.SplitHostPort(c.Address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	switch {
	case err != nil || port < 1 || port > 65535:
		return c, "", 0, fmt.Errorf("address %q: want host:port", c.Address)
	case c.Agent == "":
		return c, "", 0, errors.New("want the address of a Consul agent")
	case c.Service == "" || strings.ContainsAny(c.Service, "/?#"):
		return c, "", 0, fmt.Errorf("service %q: want a name without / ? #", c.Service)
	case c.DeregisterAfter < time.Minute:
		return c, "", 0, fmt.Errorf("deregister after %v: want 1m or more, as Consul does", c.DeregisterAfter)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"the interval of health checks", c.Interval},
		{"the interval of looks", c.Every},
		{"the timeout", c.Timeout},
	} {
		if d.value < 0 {
			return c, "", 0, fmt.Errorf("%s must not be negative", d.name)
		}
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = ""
	}
	return c, host, port, nil
}
