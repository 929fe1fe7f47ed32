package proxy_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/test/peer"
)

// Submitters reset their HTTP/2 streams while interim responses are written to
// them. The server encodes a header map on another goroutine, which can continue
// after the stream was reset. A concurrent change of that map would end the
// process; the race detector finds it.
func TestInterimResponsesWhileStreamsAreReset(t *testing.T) {
	up := peer.Listen(t, func(p *peer.Peer) {
		for p.Request() != nil {
			p.Say("%s", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-A: 1\r\nX-B: 2\r\n\r\n", 30)+ok)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up}})
	submit := h2c(t)
	const jobs = 1500
	var all sync.WaitGroup
	for worker := range uint64(8) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(worker, 1))
			for range jobs / 8 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(2000))*time.Microsecond)
				r, err := http.NewRequestWithContext(ctx, "POST", c.url("/"), strings.NewReader("{}"))
				assert.NoError(t, err)
				if res, err := submit.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
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

// net/http reads a frame whole: the bytes of one that arrives slowly count for the pace of the body all the same.
func TestASlowFrame(t *testing.T) {
	for pause, status := range map[time.Duration]string{900 * time.Millisecond: "200", 4 * time.Second: "408"} {
		bubble(t, func(t *testing.T, m *memory) {
			startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })}})
			conn, err := m.Dial(t.Context(), "tcp", "127.0.0.1:8080")
			require.NoError(t, err)
			f := frames(t, conn, false, "POST", "/", "localhost")
			var sending sync.WaitGroup
			defer sending.Wait()
			defer conn.Close()
			sending.Go(func() {
				const size = 16 << 10
				data := []byte{0, size >> 8, 0, 0, 1, 0, 0, 0, 1} // DATA that ends stream 1
				_, _ = io.Copy(conn, io.MultiReader(bytes.NewReader(data), &trickle{left: size, piece: 256, every: pause}))
			})
			assert.Equal(t, status, statusOf(f))
		})
	}
}

// Jobs whose bodies are neither kept nor read by their upstreams do not block other jobs of the connection. What is received of
// their bodies is bounded, and counts in the budget.
func TestUnreadBodiesBlockNoOtherJob(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		ended, end := context.WithCancel(t.Context())
		c := startSidecar(t, setup{network: m, budget: 1, upstreams: []string{m.upstream(t, "up:1", func(p *peer.Peer) {
			head, err := p.Head()
			if assert.NoError(t, err) && strings.HasPrefix(head, "POST /large") {
				<-ended.Done()
				return
			}
			_, err = p.In.Discard(2)
			assert.NoError(t, err)
			p.Say(ok)
		})}})
		submit := m.h2c(t)
		post := func(path string, body io.Reader) (*http.Response, error) {
			r, err := http.NewRequestWithContext(ended, "POST", "http://127.0.0.1:8080"+path, body)
			require.NoError(t, err)
			r.Header.Set("Content-Type", "text/plain")
			return submit.Do(r)
		}
		const large = 6
		var waiting sync.WaitGroup
		var sent atomic.Int64
		for range large {
			waiting.Go(func() {
				_, err := post("/large", endless{&sent}) //nolint:bodyclose // there is no response
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		synctest.Wait()
		assert.GreaterOrEqual(t, c.budget.Used(), int64(large*(64<<10+64<<10)))
		assert.Less(t, sent.Load(), int64(large*512<<10), "the beginning, what is ahead of it, and what the submitter holds")
		res, err := post("/small", reader("{}"))
		require.NoError(t, err)
		assert.Equal(t, 200, res.StatusCode)
		assert.NoError(t, res.Body.Close())
		end()
		waiting.Wait()
		c.seen(large + 1)
	})
}

// endless counts what is read of it.
type endless struct{ read *atomic.Int64 }

func (e endless) Read(p []byte) (int, error) {
	clear(p)
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// frames starts an HTTP/2 request of a text with exactly these pseudo-headers. It has no body if ends is true.
func frames(t *testing.T, conn net.Conn, ends bool, method, path, authority string) *http2.Framer {
	_, err := io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	require.NoError(t, f.WriteSettings())
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", method}, {":scheme", "http"}, {":path", path}, {":authority", authority}, {"content-type", "text/plain"}} {
		require.NoError(t, enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: ends}))
	return f
}

// statusOf returns the status of a response; 0 if the server ends the stream without one.
func statusOf(f *http2.Framer) string {
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
	assert.Equal(t, "200", statusOf(frames(t, c.connect(), true, "GET", "/a?b", "localhost")))
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
		status := statusOf(frames(t, c.connect(), true, tc.method, tc.path, tc.authority))
		assert.Contains(t, []string{"0", "400", "405"}, status, "%q %q %q", tc.method, tc.path, tc.authority)
		assert.Empty(t, w.take(), "%q %q %q", tc.method, tc.path, tc.authority)
	}
}

// A submitter that goes on sending, as far as the windows allow it, until its body has ended, is not
// interrupted by a reset before it has read the error response.
func TestAnErrorReachesAnHTTP2SubmitterThatIsStillSending(t *testing.T) {
	const size = 4 << 20
	c := startSidecar(t, setup{Config: proxy.Config{Config: job.Config{MaxBody: 1 << 20}}})
	f := frames(t, c.connect(), false, "POST", "/", "localhost")
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
		up := m.upstream(t, "up:1", func(p *peer.Peer) {
			p.Request()
			p.Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
			time.Sleep(time.Minute)
			p.Say("4\r\nlast\r\n0\r\n\r\n")
		})
		c := startSidecar(t, setup{network: m, upstreams: []string{up}})
		conn, err := m.Dial(t.Context(), "tcp", c.address)
		require.NoError(t, err)
		defer conn.Close()
		f := frames(t, conn, true, "GET", "/", "localhost")
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
