package upstreamclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A small job, by this client and by net/http's transport.
func BenchmarkDo(b *testing.B) {
	up := listen(b, func(p *peer) {
		answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 2\r\n\r\nok")
		for {
			head, err := p.in.ReadSlice('\n')
			for err == nil && len(head) > 2 {
				head, err = p.in.ReadSlice('\n')
			}
			if err != nil {
				return
			}
			if _, err := p.in.Discard(4 << 10); err != nil {
				return
			}
			_, _ = p.Write(answer)
		}
	})
	body := bytes.Repeat([]byte("x"), 4<<10)
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}
	b.Run("client", func(b *testing.B) {
		c := newClient(b, Config{})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		piece := make([]byte, 1<<10)
		b.ReportAllocs()
		for b.Loop() {
			r := &Request{Address: up, Method: "POST", Target: "/", Header: header, Whole: body, ConnectTimeout: time.Second, Deadline: time.Now().Add(time.Minute)}
			res, _, err := c.Do(ctx, r)
			require.NoError(b, err)
			_, err = res.Read(piece, time.Now().Add(time.Minute))
			require.ErrorIs(b, err, io.EOF)
			res.Close()
		}
	})
	b.Run("transport", func(b *testing.B) {
		tr := &http.Transport{DisableCompression: true}
		defer tr.CloseIdleConnections()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		b.ReportAllocs()
		for b.Loop() {
			r, err := http.NewRequestWithContext(ctx, "POST", "http://"+up+"/", bytes.NewReader(body))
			require.NoError(b, err)
			r.Header = header
			res, err := tr.RoundTrip(r)
			require.NoError(b, err)
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	})
}
