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

// toxiproxy is a process that stands before servers and spoils what passes.
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

// before puts a clean proxy before a server and returns its address. Its name is the same.
func (p *toxiproxy) before(server string) string {
	p.t.Helper()
	front := freeAddresses(p.t, 1)[0]
	p.post("/proxies", fmt.Sprintf(`{"name": %q, "listen": %[1]q, "upstream": %q, "enabled": true}`, front, server))
	return front
}

// spoil makes a proxy toxic.
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
