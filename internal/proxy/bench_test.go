package proxy_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/peer"
)

// A small job end to end on sockets. Submitter and upstream do hardly anything themselves.
func BenchmarkJob(b *testing.B) {
	body := `{"project_id":12345,"priority":"high","timeouts":{"queue_seconds":5,"evaluate_seconds":60,"stream_seconds":60},"rules":[` +
		strings.Repeat(`{"field":"title","action":"set","value":"x"},`, 20) + `{}]}`
	answer := []byte("HTTP/1.1 200 OK\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Type: text/csv\r\nContent-Length: 6\r\n\r\nanswer")
	up := peer.Listen(b, func(p *peer.Peer) {
		piece := make([]byte, 4<<10)
		for readUntil(p.Conn, piece, body[len(body)-4:]) == nil {
			_, _ = p.Write(answer)
		}
	})
	policy, err := selection.New("least-in-flight")
	require.NoError(b, err)
	c, err := net.Dial("tcp", startSidecar(b, setup{upstreams: []string{up}, policy: policy}).address)
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

// readUntil reads from a connection until a piece ends in that way.
func readUntil(c net.Conn, piece []byte, end string) error {
	for {
		n, err := c.Read(piece)
		if err != nil || bytes.HasSuffix(piece[:n], []byte(end)) {
			return err
		}
	}
}
