package registration

import (
	"maps"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/consul/api"
)

// service is the entry of a server that takes jobs.
func (c *Config) service(host string, port int) api.AgentServiceRegistration {
	at := strconv.Itoa(port)
	checked := host
	if checked == "" {
		checked = "127.0.0.1" // the agent runs on the server's machine
	}
	return api.AgentServiceRegistration{
		ID:      c.Settings.Service + "-" + net.JoinHostPort(checked, at),
		Name:    c.Settings.Service,
		Address: host, // empty means the node's
		Port:    port,
		Meta:    c.meta(),
		Check:   c.check("http://" + net.JoinHostPort(checked, at) + healthPath),
	}
}

// Consul checks healthPath while the server takes jobs, and alivePath while it
// drains: the entry must stay, so that sidecars can see that the server drains.
const healthPath, alivePath = "/healthz", "/livez"

func (c *Config) check(url string) *api.AgentServiceCheck {
	return &api.AgentServiceCheck{
		HTTP:                           url,
		Interval:                       c.Settings.CheckInterval.String(),
		Timeout:                        max(c.Settings.CheckInterval, time.Second).String(),
		DeregisterCriticalServiceAfter: c.Settings.DeregisterAfter.String(),
	}
}

// meta describes the server in the words that pilotfish's discovery reads.
func (c *Config) meta() map[string]string {
	meta := map[string]string{
		"cores":       strconv.Itoa(c.Cores),
		"started_at":  stamp(c.StartedAt),
		"preemptible": strconv.FormatBool(c.Preemptible),
		"draining":    "false",
	}
	if !c.StopsAt.IsZero() {
		meta["stops_at"] = stamp(c.StopsAt)
	}
	return meta
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// same reports whether the agent has the wanted entry.
func same(has *api.AgentService, wanted *api.AgentServiceRegistration) bool {
	return has != nil && has.Service == wanted.Name && has.Port == wanted.Port &&
		(wanted.Address == "" || has.Address == wanted.Address) && maps.Equal(has.Meta, wanted.Meta)
}
