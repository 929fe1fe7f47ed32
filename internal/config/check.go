package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/rivals"
)

// minWatch is the least time between two looks at the file.
const minWatch = time.Second

// Check looks for what is wrong with the configuration, and what is unwise.
func (c *Config) Check(f *settings.Faults) {
	c.checkPorts(f)
	if c.Watch != 0 && c.Watch < minWatch {
		f.Add("watch", "%v is neither 0 nor at least %v", c.Watch, minWatch)
	}
	if c.UpstreamTLS != nil {
		c.UpstreamTLS.Check(f.In("upstream_tls"))
	}
	c.Discovery.Check(f.In("discovery"))
	c.Reports.Check(f.In("reports"))
	c.Job.Check(f.In("job"))
	c.Selection.check(f.In("selection"))
	f.OneOf("overload.policy", c.Overload.Policy, overload.Names())
	if !(c.Overload.Stalled > 0) { // in this form it refuses NaN too
		f.Add("overload.stalled", "%v must be positive", c.Overload.Stalled)
	}
	c.Breaker.Check(f.In("breaker"))
	c.Prewarm.Check(f.In("prewarm"))
	c.Capture.Check(f.In("capture"))
	c.Tracing.Check(f.In("tracing"))
	c.Retry.Check(f.In("retry"))
	c.SecondThoughts.Check(f.In("second_thoughts"))
	c.Queue.Check(f.In("queue"))
	c.Projects.Check(f.In("projects"))
	c.Quality.Check(f.In("quality"))
	c.Stream.Check(f.In("stream"))
	c.Submitters.Check(f.In("submitters"))
	c.State.Check(f.In("state"))
	f.Positive("shutdown.grace", c.Shutdown.Grace)
	c.Log.Check(f.In("log"))
}

func (c *Config) checkPorts(f *settings.Faults) {
	f.Listen("listen", c.Listen)
	f.Listen("admin", c.Admin)
	if c.Listen == c.Admin && !strings.HasSuffix(c.Listen, ":0") { // two free ports are never the same
		f.Add("admin", "%s is taken by listen", c.Admin)
	}
	c.Mesh.Check(f.In("mesh"))
	switch c.Mesh.Listen {
	case "":
	case c.Listen, c.Admin:
		if !strings.HasSuffix(c.Mesh.Listen, ":0") {
			f.Add("mesh.listen", "%s is taken by another port of pilotfish", c.Mesh.Listen)
		}
	default:
		if open(c.Mesh.Listen) {
			f.Warn("mesh.listen", "%s is open to other machines, and asks nobody who they are", c.Mesh.Listen)
		}
	}
	if open(c.Admin) && c.AdminTokenFile == "" {
		_, port, _ := net.SplitHostPort(c.Admin)
		f.Warn("admin", "%s is open to other machines, and asks nobody who they are; 127.0.0.1:%s is for this one alone", c.Admin, port)
	}
	for i, host := range c.Hosts {
		if host == "*" {
			f.Warn(fmt.Sprintf("hosts[%d]", i), "every name is allowed, so that a web page can post jobs from this machine's browsers; list the names instead")
		}
	}
}

func (s Selection) check(f *settings.Faults) {
	switch {
	case slices.Contains(rivals.Names(), s.Policy):
		f.Warn("policy", "%s is there to compare with; expected is better for nearly every load (docs/policies.md)", s.Policy)
	case !slices.Contains(selection.Names(), s.Policy):
		f.Add("policy", "%q is not one of %s, nor one of the policies to compare with: %s%s", s.Policy,
			strings.Join(selection.Names(), ", "), strings.Join(rivals.Names(), ", "), settings.DidYouMean(s.Policy, rivals.All()))
	}
}

// open says whether other machines can reach an address to listen on.
func open(address string) bool {
	if _, local := settings.UnixPath(address); local {
		return false
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}
