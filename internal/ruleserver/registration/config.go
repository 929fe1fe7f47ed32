package registration

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

const (
	lookInterval = 3 * time.Second // between two looks at the agent; also the longest pause after a failure
	askTimeout   = 2 * time.Second // for one request to the agent
	leastForget  = time.Minute     // Consul takes a shorter deregister_after for this
)

// Settings are what a person sets. The tags make them flags of cmd/ruleserver,
// which also takes the defaults from Defaults.
type Settings struct {
	Consul          string        `placeholder:"HOST:PORT" help:"Consul agent to register at, as host:port or a URL; a token and TLS come from the CONSUL_* variables. Without it the server does not register."`
	Service         string        `placeholder:"NAME" help:"Name to register as."`
	CheckInterval   time.Duration `help:"Time between Consul's health checks. A check fails after the same time, but not within 1s."`
	DeregisterAfter time.Duration `help:"Consul forgets the server when health checks have failed for so long; 1m is the least."`
}

// Defaults are the settings of a server where nobody sets any.
func Defaults() Settings {
	return Settings{Service: "ruleserver", CheckInterval: time.Second, DeregisterAfter: leastForget}
}

// Check adds the faults of the settings to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Service == "" || strings.ContainsAny(s.Service, "/?#") {
		f.Add("service", "%q is not a name without / ? #", s.Service)
	}
	f.Positive("check_interval", s.CheckInterval)
	if s.DeregisterAfter < leastForget {
		f.Add("deregister_after", "%v must be at least %v", s.DeregisterAfter, leastForget)
	}
}

// Config is what New needs: the settings, with an agent, and the server.
type Config struct {
	Settings Settings

	// Address is host:port, where the server takes jobs. An empty or unspecified
	// host stands for the address of the agent's node.
	Address string
	// Cores is the number of joblets that can run at the same time.
	Cores int
	// StartedAt is when the server started.
	StartedAt time.Time
	// Preemptible says that the server may be stopped at any time, after a notice.
	Preemptible bool
	// StopsAt is when the server stops; zero when that is not known.
	StopsAt time.Time

	// Observe is called with nil after each registration, and with the error when
	// the agent could not be asked or told. It must not block, and may be nil.
	Observe func(error)
	// Transport carries the requests to the agent; nil is a plain one.
	Transport http.RoundTripper
}

// hostPort splits Address. An unspecified host is returned as empty.
func (c Config) hostPort() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(c.Address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("address %q: want host:port", c.Address)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = ""
	}
	return host, port, nil
}
