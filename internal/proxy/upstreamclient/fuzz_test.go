package upstreamclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/test/wirecases"
)

// tape is a connection that plays a response back after a request was written, a fixed number of
// bytes at a time, with an end or a reset.
func tape(answer []byte, piece int, end error) net.Conn {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		if _, err := http.ReadRequest(bufio.NewReader(there)); err != nil {
			return
		}
		for len(answer) > 0 {
			n, err := there.Write(answer[:min(len(answer), piece)])
			if err != nil {
				return
			}
			answer = answer[n:]
		}
	}()
	return ending{here, end}
}

// ending is a connection that ends with an error.
type ending struct {
	net.Conn
	end error
}

func (e ending) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = e.end
	}
	return n, err
}

// outcome is what a submitter can see of a response.
type outcome struct {
	interims        []string
	failed          bool // no head was received
	status          int
	length          int64
	coding          []string
	header, trailer http.Header
	body            string
	cut             bool // the body did not end as it should
}

// socket is a connection on which a response comes through the kernel.
func socket(t testing.TB, answer []byte, piece int) net.Conn {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var conns [2]net.Conn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "pair")
		conns[i], err = net.FileConn(f)
		require.NoError(t, err)
		_ = f.Close()
	}
	go func() {
		defer conns[1].Close()
		if _, err := http.ReadRequest(bufio.NewReader(conns[1])); err != nil {
			return
		}
		for len(answer) > 0 {
			n, err := conns[1].Write(answer[:min(len(answer), piece)])
			if err != nil {
				return
			}
			answer = answer[n:]
			runtime.Gosched()
		}
	}()
	return conns[0]
}

// ofClient is the outcome by the client of this package.
func ofClient(t testing.TB, method string, play net.Conn) (o outcome) {
	c := New(Config{
		Dial: func(context.Context, string, string) (net.Conn, error) { return play, nil },
		Idle: 1, IdleTimeout: time.Minute, MaxHead: 1 << 20,
	})
	defer c.Close()
	r := &Request{
		Address: "up:1", Method: method, Target: "/", Withdrawal: new(Withdrawal),
		ConnectTimeout: patience, Deadline: time.Now().Add(patience), FirstByte: patience,
		Interim: interimFunc(func(status int, h http.Header, _ http1.Head) { o.interims = append(o.interims, fmt.Sprint(status, h)) }),
	}
	res, _, err := c.Do(context.Background(), r)
	if err != nil || res.StatusCode < 200 {
		o.failed = true
		if err == nil {
			res.Close()
		}
		return o
	}
	o.status, o.length, o.coding, o.header = res.StatusCode, res.ContentLength, res.TransferEncoding, res.Header
	_ = res.Ready() // must not change what follows
	o.body, err = res.all()
	o.cut, o.trailer = err != nil, res.Trailer
	return o
}

// ofTransport is the outcome by net/http's transport, as the oracle.
func ofTransport(method string, play net.Conn) (o outcome) {
	tr := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return play, nil },
		DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
	}
	defer tr.CloseIdleConnections()
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			o.interims = append(o.interims, fmt.Sprint(code, http.Header(h)))
			return nil
		},
	})
	r := (&http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: "up:1", Path: "/"}, Header: http.Header{}}).WithContext(ctx)
	res, err := tr.RoundTrip(r)
	if err != nil || res.StatusCode < 200 || ambiguous(res) != nil {
		o.failed = true
		if err == nil {
			_ = res.Body.Close()
		}
		return o
	}
	defer res.Body.Close()
	o.status, o.length, o.coding, o.header = res.StatusCode, res.ContentLength, res.TransferEncoding, res.Header
	body, err := io.ReadAll(res.Body)
	o.body, o.cut, o.trailer = string(body), err != nil, res.Trailer
	return o
}

// without100 removes the 1xx responses that are not forwarded.
func without100(interims []string) (rest []string) {
	for _, i := range interims {
		if !strings.HasPrefix(i, "100 ") {
			rest = append(rest, i)
		}
	}
	return rest
}

// differs reports whether net/http is known to reject or change a response.
func differs(answer []byte, got, want outcome) bool {
	bareLF := bytes.Contains(bytes.ReplaceAll(answer, []byte("\r\n"), nil), []byte("\n"))
	lower := bytes.ToLower(answer)
	switch {
	case !got.failed && want.failed: // names that net/http takes for framing
		return bytes.Contains(lower, []byte("trailer"))
	case !got.cut && want.cut: // a space before an extension, or many short chunks with extensions
		return bytes.Contains(answer, []byte(";"))
	}
	return got.cut && !want.cut && bareLF && bytes.Contains(lower, []byte("chunked")) // in the trailer section
}

// Whatever an upstream answers, in whatever pieces, and however it ends: the
// client and net/http's transport make the same of it.
func FuzzAnswersAsTheTransport(f *testing.F) {
	seeds := []string{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nokexcess",
		strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 40) + ok,
		"HTTP/1.1 503 No\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy",
		"\x00\x01\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransferQEncoding: chunked\r\nTrailer: X-Sum\r\n\r\n",
		"",
	}
	for _, c := range wirecases.Responses() {
		seeds = append(seeds, c.Sent)
	}
	for _, answer := range seeds {
		for _, method := range []bool{false, true} {
			f.Add([]byte(answer), uint16(1<<15), method, false)
			f.Add([]byte(answer), uint16(3), method, true)
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte, piece uint16, head, reset bool) {
		if len(answer) > 64<<10 {
			return
		}
		method, end := "GET", io.EOF
		if head {
			method = "HEAD"
		}
		if reset {
			end = errors.New("connection reset by peer")
		}
		size := max(1, int(piece))
		got := ofClient(t, method, tape(answer, size, end))
		want := ofTransport(method, tape(answer, size, end))
		assert.Equal(t, without100(want.interims), got.interims)
		hold := func(got outcome, how string) {
			if differs(answer, got, want) {
				return
			}
			for _, o := range []outcome{got, want} {
				delete(o.header, "Connection") // net/http takes out that of a response that closes
				delete(o.header, "Trailer")    // and leaves this one where the body is not in chunks
				if !bytes.Contains(bytes.ToLower(answer), []byte("cache-control")) {
					require.NotContains(t, got.header, "Cache-Control")
					delete(o.header, "Cache-Control") // it adds one to a Pragma
				}
			}
			if got.cut && want.cut && strings.HasPrefix(got.body, want.body) {
				got.body = want.body // net/http withholds what was received of a chunk that is cut
			}
			got.interims, want.interims = nil, nil
			assert.Equal(t, want, got, how)
		}
		hold(got, "")
		if !reset {
			hold(ofClient(t, method, socket(t, answer, max(size, len(answer)/16))), "through the kernel")
		}
	})
}
