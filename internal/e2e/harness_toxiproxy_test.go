//go:build cluster

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// toxiproxy is a proxy for servers that injects network faults.
type toxiproxy struct {
	t    *testing.T
	http string // its address
}

func newToxiproxy(t *testing.T) *toxiproxy {
	t.Helper()
	binary := tool(t, "toxiproxy-server", "PILOTFISH_TOXIPROXY", "make bin/toxiproxy-server")
	p := &toxiproxy{t: t, http: freeAddresses(t, 1)[0]}
	spawn(t, filepath.Join(t.TempDir(), "toxiproxy.log"), binary, "-host=127.0.0.1", "-port="+portOf(t, p.http))
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + p.http + "/version")
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil
	}, patience, tick, "toxiproxy does not start")
	return p
}

// before creates a proxy without faults for a server, and returns its address, which is also
// its name.
func (p *toxiproxy) before(server string) string {
	p.t.Helper()
	front := freeAddresses(p.t, 1)[0]
	p.post("/proxies", fmt.Sprintf(`{"name": %q, "listen": %[1]q, "upstream": %q, "enabled": true}`, front, server))
	return front
}

// spoil adds a fault to a proxy.
func (p *toxiproxy) spoil(front, toxic string) {
	p.t.Helper()
	p.post("/proxies/"+front+"/toxics", toxic)
}

// close makes a proxy refuse connections.
func (p *toxiproxy) close(front string) {
	p.t.Helper()
	p.post("/proxies/"+front, `{"enabled": false}`)
}

func (p *toxiproxy) post(path, body string) {
	p.t.Helper()
	response, err := http.Post("http://"+p.http+path, "application/json", strings.NewReader(body))
	require.NoError(p.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	require.Less(p.t, response.StatusCode, 300, "%s %s: %s", path, body, text)
}
