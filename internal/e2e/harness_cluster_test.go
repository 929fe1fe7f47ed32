//go:build cluster || mesh

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cluster is several servers and one sidecar, each a separate process.
type cluster struct {
	t     *testing.T
	dir   string   // of the logs
	feeds string   // their directory
	flags []string // of every server

	binary  string // the servers' program
	servers map[string]*daemon
	config  string  // the sidecar's configuration file
	beside  *daemon // the sidecar's process
	sidecar *sidecar
}

func newCluster(t *testing.T, feeds string, flags ...string) *cluster {
	t.Helper()
	binary, err := ruleserver()
	require.NoError(t, err)
	return &cluster{t: t, dir: t.TempDir(), feeds: feeds, flags: flags, binary: binary, servers: map[string]*daemon{}}
}

// serve starts a server at an address, also again after its end. It waits until the server
// accepts connections, because a sidecar can send jobs to every listed upstream at once.
func (c *cluster) serve(address string) {
	c.t.Helper()
	c.servers[address] = spawn(c.t, c.serverLog(address), c.binary,
		append([]string{"--listen=" + address, "--feeds=" + c.feeds}, c.flags...)...)
	require.Eventually(c.t, func() bool { return accepts(address) }, patience, tick, "%s does not start", address)
}

// kill kills a server without notice.
func (c *cluster) kill(address string) kill {
	begun := time.Now()
	c.servers[address].kill()
	return kill{address, begun, time.Now()}
}

func accepts(address string) bool {
	c, err := net.Dial("tcp", address)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

func (c *cluster) serverLog(address string) string {
	return filepath.Join(c.dir, strings.ReplaceAll(address, ":", "-")+".log")
}

// sideline starts the sidecar and waits until it knows the upstreams.
func (c *cluster) sideline(config string) {
	c.t.Helper()
	free := freeAddresses(c.t, 2)
	c.config = filepath.Join(c.t.TempDir(), "pilotfish.yaml")
	require.NoError(c.t, os.WriteFile(c.config, []byte(fmt.Sprintf(
		"listen: %s\nadmin: %s\nreports: {interval: 1s}\nstream: {explain_headers: true}\n%s", free[0], free[1], config)), 0o600))
	c.restart()
	c.sidecar = &sidecar{t: c.t, jobs: free[0], admin: free[1]}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Log(tail(c.beside.log))
		}
	})
}

// restart starts the sidecar's process, which must not run.
func (c *cluster) restart() {
	c.t.Helper()
	c.beside = spawn(c.t, filepath.Join(filepath.Dir(c.config), "sidecar.log"), program, "serve", "--config", c.config)
}

// eligible waits until n of the sidecar's upstreams are eligible, out of of.
func (c *cluster) eligible(n, of int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		scraped, err := c.sidecar.scrape()
		if err != nil {
			return false
		}
		const known = "pilotfish_fleet_upstreams"
		return scraped.sum(known) == float64(of) && scraped.sum(known+"_eligible") == float64(n)
	}, 2*patience, 10*tick, "the sidecar may not use %d upstreams of %d", n, of)
}

// fails waits until a counter of failures has increased by n.
func (c *cluster) fails(name string, n float64) {
	c.t.Helper()
	before := c.sidecar.metric(name)
	require.Eventually(c.t, func() bool { return c.sidecar.metric(name) >= before+n },
		2*patience, 10*tick, "%s does not go up by %v", name, n)
}

// closed waits until the sidecar has counted the given number of jobs as ended, which is just after
// the end of their responses, and returns its metrics at that time.
func (c *cluster) closed(jobs int) (scraped samples) {
	c.t.Helper()
	require.Eventually(c.t, func() (done bool) {
		var err error
		scraped, err = c.sidecar.scrape()
		return err == nil && scraped.sum("pilotfish_upstream_in_flight") == 0 && scraped.sum("pilotfish_jobs_total") >= float64(jobs)
	}, patience, tick, "the sidecar has not closed the books of %d jobs", jobs)
	return scraped
}

// balance compares the sidecar's own figures with the ledger, after all jobs have ended.
func (c *cluster) balance(l *ledger) {
	c.t.Helper()
	scraped := c.closed(len(l.answers))
	assert.EqualValues(c.t, len(l.answers), scraped.sum("pilotfish_jobs_total"), "every job ended in one outcome")
	assert.EqualValues(c.t, 0, scraped.sum("pilotfish_queue_jobs"))
	assert.EqualValues(c.t, 0, scraped.sum("pilotfish_bound_used", "bound", "body_bytes"))
}

// written waits until the sidecar has logged all jobs that have ended by now, and returns their
// sessions.
func (c *cluster) written(l *ledger) (ended []string) {
	c.t.Helper()
	ended = l.sessions()
	require.Eventually(c.t, func() bool {
		text, err := os.ReadFile(c.beside.log)
		return err == nil && !slices.ContainsFunc(ended, func(session string) bool {
			return !bytes.Contains(text, []byte(`"session":"`+session+`"`))
		})
	}, patience, 10*tick, "jobs are not logged")
	return ended
}

// read adds the logs to the ledger. The processes must have ended.
func (c *cluster) read(l *ledger) {
	c.t.Helper()
	l.readSidecar(jobLines[passedJob](c.t, c.beside.log))
	for address := range c.servers {
		l.readServer(address, jobLines[workedJob](c.t, c.serverLog(address)))
	}
}
