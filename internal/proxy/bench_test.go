package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// A small job end to end on sockets, beside net/http's own reverse proxy,
// which neither reads jobs nor chooses, and beside no proxy at all. Submitter and
// upstream do hardly anything themselves.
func BenchmarkJob(b *testing.B) {
	body := `{"project_id":12345,"priority":"high","timeouts":{"queue_seconds":5,"evaluate_seconds":60,"stream_seconds":60},"rules":[` +
		strings.Repeat(`{"field":"title","action":"set","value":"x"},`, 20) + `{}]}`
	answer := []byte("HTTP/1.1 200 OK\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Type: text/csv\r\nContent-Length: 6\r\n\r\nanswer")
	up := scripted(b, func(p *peer) {
		piece := make([]byte, 4<<10)
		for readUntil(p.Conn, piece, body[len(body)-4:]) == nil {
			_, _ = p.Write(answer)
		}
	}).address
	run := func(b *testing.B, address string) {
		c, err := net.Dial("tcp", address)
		require.NoError(b, err)
		defer c.Close()
		job := fmt.Appendf(nil, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		piece := make([]byte, 4<<10)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = c.Write(job)
			if err := readUntil(c, piece, "answer"); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("pilotfish", func(b *testing.B) {
		policy, err := selection.New("least-in-flight")
		require.NoError(b, err)
		c := startSidecar(b, setup{upstreams: []string{up}, policy: policy})
		run(b, c.address)
	})
	b.Run("httputil", func(b *testing.B) {
		p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: up})
		tr := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
		defer tr.CloseIdleConnections()
		p.Transport, p.ErrorLog = tr, log.New(io.Discard, "", 0)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		s := &http.Server{Handler: p}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		run(b, l.Addr().String())
	})
	b.Run("direct", func(b *testing.B) { run(b, up) })
}

// readUntil reads from a connection until a piece ends in that way.
func readUntil(c net.Conn, piece []byte, end string) error {
	for {
		n, err := c.Read(piece)
		if err != nil || bytes.HasSuffix(piece[:n], []byte(end)) {
			return err
		}
	}
}

// BenchmarkStream is what an answer of 64 MiB costs on its way.
func BenchmarkStream(b *testing.B) {
	const size = 64 << 20
	piece := make([]byte, 32<<10)
	up := serving(b, func(w http.ResponseWriter, r *http.Request) {
		for range size / len(piece) {
			_, _ = w.Write(piece)
		}
	})
	c := startSidecar(b, setup{upstreams: []string{up}})
	submit := client(b)
	b.ReportAllocs()
	b.SetBytes(size)
	for b.Loop() {
		res, err := submit.Get(c.url("/"))
		require.NoError(b, err)
		n, err := io.Copy(io.Discard, res.Body)
		require.NoError(b, err)
		require.EqualValues(b, size, n)
		_ = res.Body.Close()
	}
}
