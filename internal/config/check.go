package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// renamed maps old names of keys to their present names.
func renamed() map[string]string {
	return map[string]string{
		"discovery.keep_last": "discovery.empty_after", "reports.health_path": "reports.health_check_path", "reports.names.read": "reports.names.prefix_cache",
		"job.queue": "job.queue_timeout", "job.evaluate": "job.first_byte_timeout", "job.stream": "job.stream_timeout",
	}
}

// Meant returns the correct key for names that people often try first.
func (c Config) Meant(key string) string {
	const timeouts = "queue.wait (for an upstream to take the job), retry.first_byte (for its response to begin) or stream.idle (for silence within it)"
	return map[string]string{
		"upstream": "discovery.static", "upstreams": "discovery.static", "servers": "discovery.static", "backends": "discovery.static",
		"discovery.static[0]": "discovery.file, which takes weights", "discovery.cores": "discovery.file, which takes cores",
		"discovery.dns": "rules.internal:9001, or rules.internal for SRV records",
		"admin":         "127.0.0.1:9180, with admin_write and admin_token_file beside it",
		"tls":           "upstream_tls (to upstreams) or mesh.tls (from Envoy)",
		"project":       "job.project", "priority": "job.priority", "max_connections": "submitters.connections",
		"health": "reports.health_check_path", "health_check": "reports.health_check_path", "healthcheck": "reports.health_check_path",
		"reports.path": "reports.metrics_path", "reports.port": "reports.prometheus, for metrics at another port than the jobs",
		"retries": "retry.attempts", "timeout": timeouts, "timeouts": timeouts,
		"log.file": "2>FILE in the shell, because the log goes to standard error",
	}[key]
}

// Check adds invalid and unwise values to f.
func (c *Config) Check(f *settings.Faults) {
	c.checkPorts(f)
	if c.Watch != 0 && c.Watch < time.Second {
		f.Add("watch", "%v is neither 0 nor at least 1s", c.Watch)
	}
	if c.UpstreamTLS != nil {
		files.CheckTLS(*c.UpstreamTLS, f.In("upstream_tls"))
	}
	all := reflect.ValueOf(c).Elem()
	for i := range all.NumField() {
		if section, ok := all.Field(i).Interface().(interface{ Check(*settings.Faults) }); ok && all.Field(i).Kind() == reflect.Struct {
			section.Check(f.In(all.Type().Field(i).Tag.Get("yaml")))
		}
	}
	f.OneOf("selection.policy", c.Selection.Policy, selection.Names())
	if c.Selection.Shadow != "" {
		f.OneOf("selection.shadow", c.Selection.Shadow, selection.Names())
	}
	c.Selection.Heavy.Check(f.In("selection.heavy"))
	f.Positive("shutdown.grace", c.Shutdown.Grace)
}

func (c *Config) checkPorts(f *settings.Faults) {
	f.Listen("listen", c.Listen)
	f.Listen("admin", c.Admin)
	if _, err := files.Token(c.AdminTokenFile); err != nil {
		f.Add("admin_token_file", "%v", err)
	}
	if filepath.IsAbs(c.Mesh.TLS) {
		files.CheckTLS(c.Mesh.Files(), f.In("mesh.tls"))
	}
	taken := map[string]string{}
	for _, port := range []struct {
		key, address string
		protected    bool // requests need a token
	}{{"listen", c.Listen, false}, {"admin", c.Admin, c.AdminTokenFile != ""}, {"mesh.listen", c.Mesh.Listen, false}} {
		switch by, is := taken[port.address]; {
		case port.address == "":
		case is && !strings.HasSuffix(port.address, ":0"): // two free ports are never the same
			f.Add(port.key, "%s is taken by %s", port.address, by)
		case open(port.address) && !port.protected:
			f.Warn(port.key, "%s is open to other machines, without authentication; 127.0.0.1 is for this machine only", port.address)
		}
		taken[port.address] = port.key
	}
	own := discovery.Own(c.Discovery.Static, []string{c.Listen, c.Admin})
	if n := len(own); n > 0 && n == len(c.Discovery.Static) {
		f.Add("discovery.static", "it has no upstream, only pilotfish's own ports")
		own = nil
	}
	for _, i := range own {
		f.Warn(fmt.Sprintf("discovery.static[%d]", i), "%s is pilotfish's own port, and is left out", c.Discovery.Static[i])
	}
	for i, host := range c.Hosts {
		if strings.Contains(host, "/") {
			f.Add(fmt.Sprintf("hosts[%d]", i), "%q is not the name of a host: leave out scheme and path", host)
		}
		if host == "*" {
			f.Warn(fmt.Sprintf("hosts[%d]", i), "every name is allowed, so that a web page can post jobs from this machine's browsers; list the names instead")
		}
	}
}

// open reports whether other machines can connect to a listening address.
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
