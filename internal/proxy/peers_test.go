//go:build peers

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/test/loopback"
	"example.org/pilotfish/test/peer"
	"example.org/pilotfish/test/wirecases"
)

// peers start nginx and HAProxy as proxies before an upstream.
var peers = map[string]func(t *testing.T, upstream string) (address string){"nginx": nginx, "haproxy": haproxy}

func nginx(t *testing.T, upstream string) (address string) {
	return started(t, func(dir string) []string { return []string{"nginx", "-p", dir, "-e", "stderr", "-c"} }, `
daemon off; master_process off; pid nginx.pid; events {}
http {
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {
    listen %s;
    location / { proxy_pass http://%s; proxy_http_version 1.1; proxy_buffering off; proxy_set_header Connection ""; }
  }
}
`, upstream)
}

func haproxy(t *testing.T, upstream string) (address string) {
	return started(t, func(string) []string { return []string{"haproxy", "-db", "-f"} }, `
defaults
  mode http
  timeout client 20s
  timeout server 20s
  timeout connect 20s
  retries 0
listen all
  bind %s
  server upstream %s
`, upstream)
}

// started starts a program with a configuration of the address to listen at and the upstream's.
func started(t *testing.T, command func(dir string) []string, config, upstream string) (address string) {
	address, err := loopback.Reserve()
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, config, address, upstream), 0o600))
	words := append(command(dir), file)
	cmd := exec.Command(words[0], words[1:]...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond, "%s does not start", words[0])
	return address
}

// Each request of the parser tests of other projects that pilotfish forwards is also forwarded by nginx or HAProxy. If
// nginx or HAProxy runs between pilotfish and the upstream, the upstream receives the same request.
func TestPeersReadTheSameRequests(t *testing.T) {
	seen := newListener(t)
	c := startSidecar(t, setup{upstreams: []string{seen.address}})
	alone, behind := map[string]string{}, map[string]*sidecar{}
	for name, proxy := range peers {
		alone[name] = proxy(t, seen.address)
		behind[name] = startSidecar(t, setup{upstreams: []string{alone[name]}})
	}
	through := func(address string, w wirecases.Case) string {
		seen.through(t, address, w)
		return strings.Join(seen.messages, ", ")
	}
	known := map[string]string{
		`OPTIONS * HTTP/1.1|@|`:                                   "nginx refuses it",
		`GET http://a%12:b\x40localhost/a HTTP/1.1|@|`:            "HAProxy forwards the whole target",
		`POST /a HTTP/1.0|@Transfer-Encoding: chunked||3|{ }|0||`: "net/http reads no chunks in HTTP/1.0, nor does HAProxy, but HAProxy forwards them",
	}
	compared := 0
	for _, w := range wirecases.Requests() {
		passed := through(c.address, w)
		if passed == "" || passed == `GET /end ""` || known[w.Text] != "" {
			continue // pilotfish refuses it; nginx and HAProxy may wait for more bytes
		}
		compared++
		n, h := through(alone["nginx"], w), through(alone["haproxy"], w)
		assert.True(t, strings.HasPrefix(n, passed) || strings.HasPrefix(h, passed),
			"%s\npilotfish %s\nnginx     %s\nHAProxy   %s", w.Text, passed, n, h)
		for name, c := range behind {
			assert.Equal(t, passed, through(c.address, w), "%s between pilotfish and the upstream, %s", name, w.Text)
		}
	}
	assert.Greater(t, compared, 80, "of %d requests", len(wirecases.Requests()))
}

// Each response of the parser tests of other projects that pilotfish forwards is also forwarded by nginx or HAProxy. If
// nginx or HAProxy runs between the submitter and pilotfish, the submitter receives the same response. If pilotfish
// refuses or truncates a response, the submitter gets 502 or a truncated response.
func TestPeersReadTheSameResponses(t *testing.T) {
	up, answer := answeringOnce(t)
	c := startSidecar(t, setup{upstreams: []string{up}})
	alone, before := map[string]string{}, map[string]string{}
	for name, proxy := range peers {
		alone[name], before[name] = proxy(t, up), proxy(t, c.address)
	}
	through := func(address string, w wirecases.Case) string {
		answer(w.Sent)
		_, message := submitted(t, address)
		return message
	}
	compared := 0
	for _, w := range wirecases.Responses() {
		passed := through(c.address, w)
		whole := !strings.HasPrefix(passed, "502") && !strings.Contains(passed, "cut")
		if whole && !strings.Contains(w.Sent, "Trailer: Content-Length") { // nginx and HAProxy forward it, and the client in this test refuses it
			compared++
			n, h := through(alone["nginx"], w), through(alone["haproxy"], w)
			assert.True(t, passed == n || passed == h, "%s\npilotfish %s\nnginx     %s\nHAProxy   %s", w.Text, passed, n, h)
		}
		for name, address := range before {
			switch got := through(address, w); {
			case whole:
				assert.Equal(t, passed, got, "%s in front of pilotfish, %s", name, w.Text)
			default:
				assert.True(t, strings.HasPrefix(got, "502") || strings.Contains(got, "cut"), "%s in front of pilotfish, %s: %s", name, w.Text, got)
			}
		}
	}
	assert.Greater(t, compared, 50, "of %d responses", len(wirecases.Responses()))
}

// What net/http's parser changes or refuses passes through pilotfish, and through nginx or HAProxy as well.
func TestPeersPassWhatNetHTTPChanges(t *testing.T) {
	const post, answer = "POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	const body = "2\r\n{}\r\n0\r\n\r\n"
	many := strings.Repeat("1;signature="+strings.Repeat("f", 64)+"\r\n \r\n", 1000) + body
	var mu sync.Mutex
	var response, got string
	up := peer.Listen(t, func(p *peer.Peer) {
		for {
			head, err := p.Head()
			if err != nil {
				return
			}
			sent := message(t, head, p.In)
			mu.Lock()
			got = sent
			p.Say("%s", response)
			mu.Unlock()
		}
	})
	through := map[string]string{"pilotfish": startSidecar(t, setup{upstreams: []string{up}}).address}
	for name, proxy := range peers {
		through[name] = proxy(t, up)
	}
	for name, tc := range map[string]struct{ request, response string }{
		"Pragma":                      {post + "Pragma: no-cache\r\n\r\n" + body, answer + "Pragma: no-cache\r\n\r\n" + body},
		"a Trailer with framing":      {post + "Trailer: X, Content-Length\r\n\r\n" + body, answer + "Trailer: X, Content-Length\r\n\r\n" + body},
		"a space before an extension": {post + "\r\n2 ;a\r\n{}\r\n0 ;b\r\n\r\n", answer + "\r\n2 ;a\r\n{}\r\n0 ;b\r\n\r\n"},
		"many short chunks":           {post + "\r\n" + many, answer + "\r\n" + many},
		"a long trailer section":      {post + "\r\n2\r\n{}\r\n0\r\nX: " + strings.Repeat("y", 5000) + "\r\n\r\n", answer + "\r\n2\r\n{}\r\n0\r\nX: " + strings.Repeat("y", 5000) + "\r\n\r\n"},
		"a bad escape in a query":     {strings.Replace(post, "/a", "/a?%zz", 1) + "\r\n" + body, answer + "\r\n" + body},
	} {
		seen := map[string][2]string{}
		for who, address := range through {
			mu.Lock()
			response, got = tc.response, ""
			mu.Unlock()
			s := connectTo(t, address)
			s.say("%s", tc.request)
			p := peer.Over(t, s)
			head, err := p.Head()
			require.NoError(t, err, name)
			reply := message(t, head, p.In)
			_ = s.Close()
			mu.Lock()
			seen[who] = [2]string{got, reply}
			mu.Unlock()
		}
		for i, direction := range []string{"request", "response"} {
			ours := seen["pilotfish"][i]
			assert.Contains(t, ours, "{}", "%s, %s", name, direction)
			assert.True(t, ours == seen["nginx"][i] || ours == seen["haproxy"][i], "%s, %s: %.300q", name, direction, seen)
		}
	}
}

// message is what matters of a message: the body, and fields that must not be added or lost.
func message(t *testing.T, head string, in *bufio.Reader) string {
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(head[strings.Index(head, "\n")+1:]))).ReadMIMEHeader()
	require.NoError(t, err)
	var body []byte
	if h.Get("Transfer-Encoding") != "" {
		body, err = io.ReadAll(&http1.Chunks{In: in, MaxTrailer: 64 << 10})
	} else {
		n, _ := strconv.Atoi(h.Get("Content-Length"))
		body = make([]byte, n)
		_, err = io.ReadFull(in, body)
	}
	assert.NoError(t, err)
	return fmt.Sprintf("%q Cache-Control=%q Pragma=%q X-A=%q", strings.TrimSpace(string(body)), h["Cache-Control"], h["Pragma"], h["X-A"])
}
