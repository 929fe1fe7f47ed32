package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy"
)

// Submitters reset their HTTP/2 streams while interim answers are written to
// them. The server encodes a header map on another goroutine, which can continue
// after the stream was reset. A concurrent change of that map would end the
// process; the race detector finds it.
func TestInterimAnswersWhileStreamsAreReset(t *testing.T) {
	up := scripted(t, func(p *peer) {
		for p.request() != nil {
			p.say("%s", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-A: 1\r\nX-B: 2\r\n\r\n", 30)+ok)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}})
	submit := h2c(t)
	const jobs = 1500
	var all sync.WaitGroup
	for worker := range uint64(8) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(worker, 1))
			for range jobs / 8 {
				ctx, cancel := context.WithCancel(t.Context())
				r, err := http.NewRequestWithContext(ctx, "POST", c.url("/"), strings.NewReader("{}"))
				if !assert.NoError(t, err) {
					cancel()
					return
				}
				timer := time.AfterFunc(time.Duration(rng.IntN(2000))*time.Microsecond, cancel)
				if res, err := submit.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				timer.Stop()
				cancel()
			}
		})
	}
	all.Wait()
	res, text := c.post("{}")
	require.Equal(t, 200, res.StatusCode, "the process lives")
	assert.Equal(t, "ok", text)
	require.Eventually(t, func() bool { return c.budget.Used() == 0 }, patience, time.Millisecond, "the jobs of streams that were reset should end")
}

// A body that is passed on as it comes may still be read when its stream has ended. What net/http has for a
// stream is gone then, and a deadline for it would end the process.
func TestABodyOfHTTP2ThatOutlastsItsAnswer(t *testing.T) {
	const sent = 500_000
	up := scripted(t, func(p *peer) {
		_, _ = p.head()
		_, _ = io.CopyN(io.Discard, p.in, sent) // now the attempt waits for more
		p.say(ok)
		p.gone()
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}, budget: 1})
	submit := h2c(t)
	for range 5 {
		body, rest := io.Pipe()
		go func() { _, _ = io.WriteString(rest, strings.Repeat(" ", sent)) }()
		res, err := submit.Post(c.url("/"), "text/plain", body)
		require.NoError(t, err)
		assert.Equal(t, 200, res.StatusCode)
		_, _ = res.Body.Close(), rest.Close()
	}
	c.seen(5)
}

// net/http reads a frame whole: the bytes of one that arrives slowly count for the pace of the body all the same.
func TestASlowFrame(t *testing.T) {
	for pause, status := range map[time.Duration]string{900 * time.Millisecond: "200", 4 * time.Second: "408"} {
		bubble(t, func(t *testing.T, m *memory) {
			startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", func(p *peer) { p.request(); p.say(ok) })}})
			conn, err := m.Dial(t.Context(), "tcp", "127.0.0.1:8080")
			require.NoError(t, err)
			f := frames(t, conn, false, [2]string{":method", "POST"}, [2]string{":scheme", "http"}, [2]string{":path", "/"}, [2]string{":authority", "localhost"}, [2]string{"content-type", "text/plain"})
			var sending sync.WaitGroup
			defer sending.Wait()
			defer conn.Close()
			sending.Go(func() {
				const size, piece = 16 << 10, 256
				_, err := conn.Write([]byte{0, size >> 8, 0, 0, 1, 0, 0, 0, 1}) // DATA that ends stream 1
				for sent := 0; sent < size && err == nil; sent += piece {
					time.Sleep(pause)
					_, err = conn.Write(make([]byte, piece))
				}
			})
			for {
				frame, err := f.ReadFrame()
				require.NoError(t, err)
				if head, ok := frame.(*http2.MetaHeadersFrame); ok {
					assert.Equal(t, status, head.PseudoValue("status"))
					return
				}
			}
		})
	}
}

// frames starts an HTTP/2 request with exactly these pseudo-headers. It has no body if ends is true.
func frames(t *testing.T, conn net.Conn, ends bool, pseudo ...[2]string) *http2.Framer {
	_, err := io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	require.NoError(t, f.WriteSettings())
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range pseudo {
		require.NoError(t, enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: ends}))
	return f
}

// framed sends one request over HTTP/2 with these pseudo-headers as they are, and
// returns the response's status; 0 when the server ends the stream without one.
func framed(t *testing.T, c *sidecar, pseudo ...[2]string) (status string) {
	conn, err := dial(t.Context(), "tcp", c.address)
	require.NoError(t, err)
	defer conn.Close()
	f := frames(t, conn, true, pseudo...)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "0"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return "0"
		}
	}
}

// What HTTP/2 can carry and a request line cannot is refused before an upstream
// sees anything of it.
func TestRequestLinesOfHTTP2(t *testing.T) {
	w := newListener(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}, Config: proxy.Config{Hosts: []string{"*"}}})
	head := func(method, path, authority string) [][2]string {
		return [][2]string{{":method", method}, {":scheme", "http"}, {":path", path}, {":authority", authority}}
	}
	assert.Equal(t, "200", framed(t, c, head("GET", "/a?b", "localhost")...))
	assert.Equal(t, []string{`GET /a?b ""`}, w.take())
	for _, tc := range []struct{ method, path, authority string }{
		{"GET", "/a HTTP/1.1 x: y", "localhost"},
		{"GET", "/a HTTP/1.1\r\nX: y", "localhost"},
		{"GET", "/a\nb", "localhost"},
		{"GET", "/a\x00", "localhost"},
		{"GET", "/a\x7f", "localhost"},
		{"GET", "/\xff", "localhost"},
		{"GET", "/a#b", "localhost"},
		{"GET", "/<a>", "localhost"},
		{"GET", "*", "localhost"},
		{"GET", "a", "localhost"},
		{"GET /b", "/a", "localhost"},
		{"GET\r\nX:", "/a", "localhost"},
		{"GET", "/a", "local host"},
		{"GET", "/a", "localhost\r\nX: y"},
		{"GET", "/a", "a/b"},
	} {
		status := framed(t, c, head(tc.method, tc.path, tc.authority)...)
		assert.Contains(t, []string{"0", "400", "405"}, status, "%q %q %q", tc.method, tc.path, tc.authority)
		assert.Empty(t, w.take(), "%q %q %q", tc.method, tc.path, tc.authority)
	}
}

// A connection that has served HTTP/1.1 does not change to HTTP/2: behind another proxy, the preface may
// stand in a body of somebody else's.
func TestAPrefaceAfterARequest(t *testing.T) {
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings
	c := startSidecar(t, setup{upstreams: []string{answering(t, ok).address}})
	for name, first := range map[string]string{
		"plain":   "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
		"chunked": "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		for cut := 4; cut <= len(preface); cut += 5 {
			t.Run(fmt.Sprint(name, cut), func(t *testing.T) {
				s := c.connect()
				s.say("%s", first)
				require.Equal(t, 200, s.status())
				s.say("%s", preface[:cut])
				_ = s.tcp().CloseWrite()
				all, _ := s.rest()
				assert.NotContains(t, all, settings[3:], "no frame of HTTP/2 comes")
				assert.Contains(t, all, "HTTP/1.1 400 ")
			})
		}
	}
	s := c.connect()
	s.say("%s", preface)
	frame := make([]byte, 4)
	_, err := io.ReadFull(s.in, frame)
	require.NoError(t, err)
	assert.EqualValues(t, 4, frame[3], "on a new connection, settings come")
}

// A submitter that goes on sending, as far as the windows allow it, until its body has ended, is not
// interrupted by a reset before it has read the error response.
func TestAnErrorReachesAnHTTP2SubmitterThatIsStillSending(t *testing.T) {
	const size = 4 << 20
	c := startSidecar(t, setup{Config: proxy.Config{Config: job.Config{MaxBody: 1 << 20}}})
	conn, err := dial(t.Context(), "tcp", c.address)
	require.NoError(t, err)
	defer conn.Close()
	f := frames(t, conn, false, [2]string{":method", "POST"}, [2]string{":scheme", "http"}, [2]string{":path", "/"}, [2]string{":authority", "localhost"})
	status, ended := "", false
	window := map[uint32]int{0: 65535, 1: 65535} // of the connection, and of the stream
	read := func() {
		frame, err := f.ReadFrame()
		require.NoError(t, err)
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				require.NoError(t, f.WriteSettingsAck())
			}
		case *http2.WindowUpdateFrame:
			window[frame.StreamID] += int(frame.Increment)
		case *http2.MetaHeadersFrame:
			status, ended = frame.PseudoValue("status"), frame.StreamEnded()
		case *http2.DataFrame:
			ended = frame.StreamEnded()
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			require.Fail(t, "the exchange was interrupted", "%v", frame)
		}
	}
	for sent := 0; sent < size; {
		n := min(16<<10, size-sent, window[0], window[1])
		if n == 0 {
			read()
			continue
		}
		sent += n
		window[0], window[1] = window[0]-n, window[1]-n
		require.NoError(t, f.WriteData(1, sent == size, make([]byte, n)))
	}
	for !ended {
		read()
	}
	assert.Equal(t, "413", status)
}

// A submitter that computes for minutes between two reads does not answer PING in that time. Its job goes on, as over HTTP/1.1.
func TestAnHTTP2SubmitterThatWorksBetweenTwoReads(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		up := m.upstream(t, "up:1", func(p *peer) {
			p.request()
			p.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
			time.Sleep(time.Minute)
			p.say("4\r\nlast\r\n0\r\n\r\n")
		})
		c := startSidecar(t, setup{network: m, upstreams: []string{up}})
		conn, err := m.Dial(t.Context(), "tcp", c.address)
		require.NoError(t, err)
		defer conn.Close()
		f := frames(t, conn, true, [2]string{":method", "GET"}, [2]string{":scheme", "http"}, [2]string{":path", "/"}, [2]string{":authority", "localhost"})
		var body []byte
		for ended := false; !ended; {
			frame, err := f.ReadFrame()
			require.NoError(t, err, "after %q", body)
			if data, ok := frame.(*http2.DataFrame); ok {
				body, ended = append(body, data.Data()...), data.StreamEnded()
				time.Sleep(4 * time.Minute)
			}
		}
		assert.Equal(t, "firstlast", string(body))
	})
}
