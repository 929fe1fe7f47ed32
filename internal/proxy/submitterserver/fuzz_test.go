package submitterserver

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/wirecases"
)

// FuzzAgainstNetHTTP compares this server with net/http's server: both must send the same responses to the same bytes.
func FuzzAgainstNetHTTP(f *testing.F) {
	const host = "Host: localhost\r\n"
	for _, path := range []string{"/", "/none", "/nothing", "/unmodified", "/chunked", "/pieces", "/trailers", "/badtrailers", "/declared", "/interim", "/short", "/long", "/zero", "/close", "/abort", "/panic", "/odd"} {
		f.Add([]byte("GET " + path + " HTTP/1.1\r\n" + host + "\r\nGET / HTTP/1.1\r\n" + host + "\r\n"))
		f.Add([]byte("POST " + path + " HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello" + "GET / HTTP/1.1\r\n" + host + "\r\n"))
	}
	for n := range 6 { // starts of requests
		f.Add([]byte("GET /"[:n]))
		f.Add([]byte("GET / HTTP/1.1\r\n" + host + "\r\n" + "GET /"[:n]))
		f.Add([]byte("POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello" + "GET /"[:n]))
		f.Add([]byte("POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello" + "\r\n\r\n\r\n"[:n] + "GET / HTTP/1.1\r\n" + host + "\r\n"))
	}
	odd, err := os.ReadFile("testdata/requests.txt")
	require.NoError(f, err)
	for line := range strings.SplitSeq(string(odd), "\n") {
		sent, err := strconv.Unquote(`"` + line + `"`)
		require.NoError(f, err, line)
		f.Add([]byte(sent))
	}
	for _, c := range wirecases.Requests() {
		f.Add([]byte(c.Sent))
	}
	large := [][]byte{
		fmt.Appendf(nil, "POST / HTTP/1.1\r\n%sContent-Length: 9000\r\n\r\n%s", host, bytes.Repeat([]byte("x"), 9000)),
		fmt.Appendf(nil, "GET / HTTP/1.1\r\n%sX: %s\r\n\r\n", host, bytes.Repeat([]byte("x"), 9000)),
	}
	tested := serving(f, http.HandlerFunc(behaviours), nil)
	go func() {
		for range tested.behind { //nolint:revive // they are counted elsewhere
		}
	}()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	model := &http.Server{Handler: http.HandlerFunc(behaviours), DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = model.Serve(l) }()
	f.Cleanup(func() { _ = model.Close() })
	for _, sent := range large {
		assert.Equal(f, exchange(f, l.Addr().String(), sent), exchange(f, tested.address, sent))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) > 4<<10 {
			return // a refusal with bytes unread is followed by a reset, which may overtake it
		}
		if bytes.LastIndex(sent, []byte("PRI ")) > 0 {
			return // it is refused here, and there for the handler to refuse
		}
		lower := bytes.ToLower(sent)
		if bytes.Contains(lower, []byte("http/1.0")) && bytes.Count(lower, []byte("keep-alive")) != bytes.Count(lower, []byte("\r\nconnection: keep-alive\r\n")) {
			return // from a malformed list net/http takes keep-alive, which is not in it
		}
		if bytes.Contains(lower, []byte("http/1.0")) && bytes.Contains(lower, []byte("transfer-encoding")) {
			return // ends the connection here
		}
		if bytes.Contains(lower, []byte("chunked")) {
			bareLF := bytes.Contains(bytes.ReplaceAll(sent, []byte("\r\n"), nil), []byte("\n"))
			if bareLF || bytes.Contains(lower, []byte("content-length")) || bytes.Contains(lower, []byte(";")) || bytes.Contains(lower, []byte("trailer")) {
				return // ends the connection here, or is refused there
			}
		}
		assert.Equal(t, exchange(t, l.Addr().String(), sent), exchange(t, tested.address, sent), "%q", sent)
	})
}
