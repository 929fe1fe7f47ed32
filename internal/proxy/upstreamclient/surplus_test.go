package upstreamclient

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/test/certs"
	"example.org/pilotfish/test/peer"
	"example.org/pilotfish/test/wirecases"
)

// identity returns a certificate for 127.0.0.1, and a dial function that trusts it.
func identity(t testing.TB) (server *tls.Config, dial files.Dial) {
	t.Helper()
	ca, path := certs.New(t), filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, certs.PEM(ca.Cert.Raw), 0o600))
	trusting, err := files.NewTLS(settings.TLS{CAFile: path, ServerName: "127.0.0.1"}, func(error) {})
	require.NoError(t, err)
	server = &tls.Config{Certificates: []tls.Certificate{ca.TLS("upstream.test")}, DynamicRecordSizingDisabled: true}
	return server, trusting.Over((&net.Dialer{}).DialContext)
}

// wire is the server's connection below TLS. It can hold written bytes back.
type wire struct {
	net.Conn
	holds bool
	held  []byte
}

func (w *wire) Write(p []byte) (int, error) {
	if !w.holds {
		return w.Conn.Write(p)
	}
	w.held = append(w.held, p...)
	return len(p), nil
}

// send sends the held bytes except the last ones, in one piece.
func (w *wire) send(but int) {
	n := max(0, len(w.held)-but)
	_, _ = w.Conn.Write(w.held[:n])
	w.held = w.held[n:]
}

// marked is the response to one job. Every byte of its body is the job's mark.
func marked(mark byte, length int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Mark: %c\r\nContent-Length: %d\r\n\r\n%s", mark, length, strings.Repeat(string(mark), length))
}

// records is how a server splits a response and the surplus after it.
type records struct {
	size int // of the TLS records; 0 means one record for the response and one for the surplus
	late int // number of bytes of the surplus's last record that are held back until the next request
}

// write writes a response and the surplus as records, and sends all bytes that are not held back.
func (s records) write(w *wire, c net.Conn, answer, more string) {
	w.holds = true
	needed, text := 0, answer+more // needed is the number of bytes with the whole response
	for at := 0; at < len(text); {
		n := min(max(s.size, len(text)/100, 1), len(text)-at)
		switch {
		case s.size == 0 && at == 0:
			n = len(answer)
		case s.size == 0:
			n = len(text) - at
		}
		_, _ = c.Write([]byte(text[at : at+n]))
		if at += n; needed == 0 && at >= len(answer) {
			needed = len(w.held)
		}
	}
	w.holds = false
	w.send(max(0, min(s.late, len(w.held)-needed-1)))
}

// serveRecords starts an upstream that runs script for each connection, over TLS unless cfg is nil. It returns the address.
func serveRecords(t testing.TB, cfg *tls.Config, script func(p *peer.Peer, w *wire)) string {
	return peer.Listen(t, func(p *peer.Peer) {
		w := &wire{Conn: p.Conn}
		c := net.Conn(w)
		if cfg != nil {
			c = tls.Server(w, cfg)
		}
		over := peer.Over(t, c)
		over.N = p.N
		script(over, w)
	})
}

// exchange sends a job with a mark, and fails if a byte of the response has another mark. It reports
// whether there was a response.
func exchange(t testing.TB, c *Client, address string, mark byte, large bool) bool {
	body := string(mark)
	if large {
		body += "large"
	}
	res, _, err := c.Do(context.Background(), job(address, body))
	if err != nil {
		t.Logf("job %c: %v", mark, err)
		return false
	}
	text, err := res.all()
	require.Equal(t, string(mark), res.Header.Get("X-Mark"), "the head of another job's answer")
	require.Empty(t, strings.Trim(text, string(mark)), "bytes of another job's answer")
	return err == nil
}

// No byte that an upstream sends after the end of a response is in the response to another job, however TLS splits
// the bytes into records.
func TestNoJobGetsAnotherJobsResponse(t *testing.T) {
	surpluses := map[string]func(mark byte) string{
		"nothing":         func(byte) string { return "" },
		"a byte":          func(mark byte) string { return string(mark) },
		"too long a body": func(mark byte) string { return strings.Repeat(string(mark), 10) },
		"a second answer": func(mark byte) string { return marked(mark, 20) },
		"a large answer":  func(mark byte) string { return marked(mark, 20_000) },
		"half an answer":  func(mark byte) string { return marked(mark, 20)[:30] },
		"an interim":      func(mark byte) string { return fmt.Sprintf("HTTP/1.1 103 Hints\r\nX-Mark: %c\r\n\r\n", mark) },
		"an empty line":   func(byte) string { return "\r\n" },
	}
	tls13, dial := identity(t)
	tls12 := tls13.Clone()
	tls12.MaxVersion = tls.VersionTLS12
	for version, c := range map[string]struct {
		cfg  *tls.Config
		dial files.Dial
	}{"TCP": {}, "TLS 1.2": {tls12, dial}, "TLS 1.3": {tls13, dial}} {
		for name, surplus := range surpluses {
			t.Run(name+", "+version, func(t *testing.T) {
				var split atomic.Pointer[records]
				up := serveRecords(t, c.cfg, func(p *peer.Peer, w *wire) {
					for r := p.Request(); r != nil; r = p.Request() {
						w.send(0) // the bytes held back
						mark, length := r.Text[0], 5
						if len(r.Text) > 1 {
							length = 6_000
						}
						split.Load().write(w, p, marked(mark, length), surplus(mark))
					}
				})
				client := newClient(t, Config{Dial: c.dial})
				for _, size := range []int{0, 1, 7, 100, 16 << 10} {
					for _, late := range []int{0, 1, 10} {
						split.Store(&records{size, late})
						for i := range 4 {
							require.True(t, exchange(t, client, up, byte('A'+i), i%2 == 1), "job %d, records of %d bytes, %d bytes late", i, size, late)
						}
					}
				}
			})
		}
	}
}

// whole reports whether net/http's reader finds the end of a response before the end of the connection.
func whole(answer []byte, head bool) bool {
	in := bufio.NewReader(bytes.NewReader(answer))
	asked := &http.Request{Method: "GET"}
	if head {
		asked.Method = "HEAD"
	}
	for {
		res, err := http.ReadResponse(in, asked) //nolint:bodyclose // it is over what is in memory
		if err != nil {
			return false
		}
		if res.StatusCode/100 == 1 && res.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		_, err = io.Copy(io.Discard, res.Body)
		framed := res.Body == http.NoBody || res.ContentLength >= 0 || len(res.TransferEncoding) > 0
		return err == nil && framed
	}
}

// Two requests on one connection: the response to the second has no byte that arrived before the second was
// sent.
func FuzzTwoAnswers(f *testing.F) {
	firsts := []string{
		ok, ok + "x", ok + ok, marked('x', 100) + marked('x', 7000), "HTTP/1.1 204 No Content\r\n\r\n" + ok,
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nxxxxx", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nokexcess",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n\r\n" + ok,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\n" + ok + "HTTP/1.1 103 Early Hints\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end",
	}
	for _, c := range wirecases.Responses() {
		firsts = append(firsts, c.Sent)
	}
	for _, first := range firsts {
		for _, secure := range []bool{false, true} {
			f.Add([]byte(first), uint16(1<<15), secure, false)
			f.Add([]byte(first), uint16(50), secure, true)
		}
	}
	cfg, dial := identity(f)
	f.Fuzz(func(t *testing.T, first []byte, record uint16, secure, head bool) {
		if len(first) > 8<<10 || record < 32 { // so that all of it arrives in one piece
			return
		}
		server, over := cfg, dial
		if !secure {
			server, over = nil, nil
		}
		var requests atomic.Int32
		up := serveRecords(t, server, func(p *peer.Peer, w *wire) {
			for p.Request() != nil {
				if requests.Add(1) > 1 {
					p.Say("%s", marked('2', 3))
					continue
				}
				records{size: int(record)}.write(w, p, string(first), "")
				if !whole(first, head) {
					return
				}
			}
		})
		client := newClient(t, Config{Idle: 1, Dial: over})
		r := job(up, "{}")
		if head {
			r.Method, r.Whole = "HEAD", nil
		}
		if res, _, err := client.Do(context.Background(), r); err == nil {
			_, _ = res.all()
		}
		res, _, err := client.Do(context.Background(), job(up, "{}"))
		if err != nil && !whole(first, head) {
			return // the server was closing the connection, although the response was whole for the client, which accepts more
		}
		require.NoError(t, err)
		text, err := res.all()
		require.NoError(t, err)
		require.Equal(t, "222", text)
	})
}
