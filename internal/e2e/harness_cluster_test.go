//go:build cluster || mesh || soak

package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// cluster is several servers and one sidecar, each a separate process.
type cluster struct {
	t     *testing.T
	dir   string   // of the logs
	feeds string   // their directory
	flags []string // of every server

	binary  string // the servers' program
	servers map[string]*program.Daemon
	config  string          // the sidecar's configuration file
	beside  *program.Daemon // the sidecar's process
	sidecar *sidecar
}

func newCluster(t *testing.T, feeds string, flags ...string) *cluster {
	t.Helper()
	binary, err := ruleserver()
	require.NoError(t, err)
	return &cluster{t: t, dir: t.TempDir(), feeds: feeds, flags: flags, binary: binary, servers: map[string]*program.Daemon{}}
}

// serve starts a server at an address, also again after its end. It waits until the server
// accepts connections, because a sidecar can send jobs to every listed upstream at once.
func (c *cluster) serve(address string) {
	c.t.Helper()
	c.servers[address] = program.Spawn(c.t, c.serverLog(address), c.binary,
		append([]string{"--listen=" + address, "--feeds=" + c.feeds}, c.flags...)...)
	require.Eventually(c.t, func() bool { return accepts(address) }, patience, tick, "%s does not start", address)
}

// kill kills a server without notice.
func (c *cluster) kill(address string) kill {
	begun := time.Now()
	c.servers[address].Kill()
	return kill{address, begun, time.Now()}
}

// ill gives a server a fault, or stops it.
func (c *cluster) ill(address, fault string) {
	c.t.Helper()
	if fault == "" {
		c.servers[address].Signal(syscall.SIGSTOP)
		return
	}
	r := call(c.t, http.MethodPut, "http://"+address+"/v1/fault", fault)
	require.Equal(c.t, http.StatusOK, r.status, r.text)
}

// well ends the fault of a server.
func (c *cluster) well(address, fault string) {
	c.t.Helper()
	if fault == "" {
		c.servers[address].Signal(syscall.SIGCONT)
		return
	}
	c.ill(address, "none")
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
}

// restart starts the sidecar's process, which must not run.
func (c *cluster) restart() {
	c.t.Helper()
	c.beside = program.Spawn(c.t, filepath.Join(filepath.Dir(c.config), "sidecar.log"), pilotfish, "serve", "--config", c.config)
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
		text, err := os.ReadFile(c.beside.Log)
		return err == nil && !slices.ContainsFunc(ended, func(session string) bool {
			return !bytes.Contains(text, []byte(`"session":"`+session+`"`))
		})
	}, patience, 10*tick, "jobs are not logged")
	return ended
}

// read adds the logs to the ledger. The processes must have ended.
func (c *cluster) read(l *ledger) {
	c.t.Helper()
	l.readSidecar(jobLines[passedJob](c.t, c.beside.Log))
	for address := range c.servers {
		l.readServer(address, jobLines[workedJob](c.t, c.serverLog(address)))
	}
}

const (
	// smallProjects are numbered from 1; their responses fit into one TCP segment.
	smallProjects, smallItems = 400, 20
	// bigProject and the next ones have more data than socket buffers hold, so their responses
	// do not end before they are read.
	bigProject = 1000
	bigItems   = 32 << 10
)

// newFeeds creates a directory with the data of all small projects and some big ones.
func newFeeds(t *testing.T, big int) string {
	t.Helper()
	dir := t.TempDir()
	write := func(project int) {
		file := filepath.Join(dir, fmt.Sprintf("%d.csv", project))
		require.NoError(t, os.WriteFile(file, []byte(feed(project, "")), 0o600))
	}
	for p := 1; p <= smallProjects; p++ {
		write(p)
	}
	for p := bigProject; p < bigProject+big; p++ {
		write(p)
	}
	return dir
}

// feed returns a project's data. Jobs give every item a title.
func feed(project int, title string) string {
	items, filling := smallItems, ""
	if project >= bigProject {
		items, filling = bigItems, strings.Repeat("x", 1<<10)
	}
	var text strings.Builder
	text.WriteString("id,project,title,filling\n")
	for i := range items {
		fmt.Fprintf(&text, "%d,%d,%s,%s\n", i, project, title, filling)
	}
	return text.String()
}

// job returns the text of a job. Its result depends on its session, so no server has the result
// cached, and a response to another job is detected.
func job(session string, project int, priority, more string) string {
	return fmt.Sprintf(`{"session_id": %q, "project_id": %d, "priority": %q%s, "operators": [
		{"name": "Entitle", "actions": [{"field": "title", "action": "set", "value": %q}]}]}`,
		session, project, priority, more, session)
}

// rightAnswer returns the hash of the only correct response to a job.
func rightAnswer(session string, project int) [sha256.Size]byte {
	return sha256.Sum256([]byte(feed(project, session)))
}
