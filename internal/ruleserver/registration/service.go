package registration

import (
	"maps"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/consul/api"
)

// service is what an agent is to know of the server, before any notice.
func (c *Config) service(host string, port int) api.AgentServiceRegistration {
	at := strconv.Itoa(port)
	checked := host
	if checked == "" {
		checked = "127.0.0.1" // the agent is beside the server
	}
	return api.AgentServiceRegistration{
		ID:      c.Service + "-" + net.JoinHostPort(checked, at),
		Name:    c.Service,
		Address: host, // when empty, the node's is taken
		Port:    port,
		Meta:    c.meta(),
		Check:   c.check("http://" + net.JoinHostPort(checked, at) + health),
	}
}

// The paths that say whether the server takes jobs, and whether it is there. A
// server that drains is there for as long as it has jobs: it stays in the
// catalogue, for others to learn that it drains.
const health, alive = "/healthz", "/livez"

func (c *Config) check(url string) *api.AgentServiceCheck {
	return &api.AgentServiceCheck{
		HTTP:                           url,
		Interval:                       c.Interval.String(),
		Timeout:                        max(c.Interval, time.Second).String(),
		DeregisterCriticalServiceAfter: c.DeregisterAfter.String(),
	}
}

// meta is what the server tells of itself, in words that discovery reads.
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

// knows says whether what the agent has is what it is to have.
func knows(has *api.AgentService, wanted *api.AgentServiceRegistration) bool {
	return has != nil && has.Service == wanted.Name && has.Port == wanted.Port &&
		(wanted.Address == "" || has.Address == wanted.Address) && maps.Equal(has.Meta, wanted.Meta)
}
