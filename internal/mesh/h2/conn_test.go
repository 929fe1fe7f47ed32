package h2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends tests that hang.
const patience = 2 * time.Minute

// client is the client of a connection, frame by frame.
type client struct {
	*http2.Framer
	*encoder
	t      *testing.T
	net    net.Conn
	conn   *Conn
	data   map[uint32]string // received, by stream
	status map[uint32]string // gRPC status, by stream
}

// newClient starts a connection. The handler's streams must have ended at the end of the test.
func newClient(t *testing.T, handler func(*Stream)) *client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	there, err := l.Accept()
	require.NoError(t, err)
	c := &client{Framer: http2.NewFramer(nc, nc), encoder: newEncoder(), t: t, net: nc, conn: New(there, handler), data: map[uint32]string{}, status: map[uint32]string{}}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	served := serve(c.conn)
	t.Cleanup(func() {
		_ = nc.Close()
		<-served
		assert.Empty(t, c.conn.streams)
		assert.Empty(t, c.conn.idle)
	})
	_, err = io.WriteString(nc, http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, c.WriteSettings())
	return c
}

// serve serves a connection, and returns a channel that is closed at its end.
func serve(c *Conn) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		c.Serve()
	}()
	return ended
}

// encoder encodes the heads of one connection.
type encoder struct {
	text  bytes.Buffer
	hpack *hpack.Encoder
}

func newEncoder() *encoder {
	e := &encoder{}
	e.hpack = hpack.NewEncoder(&e.text)
	return e
}

// head encodes pairs of a name and a value.
func (e *encoder) head(pairs ...string) []byte {
	e.text.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = e.hpack.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return e.text.Bytes()
}

// open starts a stream of a POST to /a. The values of the headers can be replaced.
func (c *client) open(id uint32, end bool, replace ...string) {
	c.t.Helper()
	given := append(replace, []string{"POST", "/a", "http", "trailers"}[len(replace):]...)
	block := c.head(":method", given[0], ":path", given[1], ":scheme", given[2], "te", given[3])
	require.NoError(c.t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: end}))
}

// send sends data.
func (c *client) send(id uint32, text string, end bool) {
	c.t.Helper()
	require.NoError(c.t, c.WriteData(id, end, []byte(text)))
}

// until reads frames up to one that is wanted.
func (c *client) until(wanted func(http2.Frame) bool) {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		require.NoError(c.t, err)
		switch f := f.(type) {
		case *http2.DataFrame:
			c.data[f.StreamID] += string(f.Data())
		case *http2.MetaHeadersFrame:
			for _, h := range f.RegularFields() {
				if h.Name == "grpc-status" {
					c.status[f.StreamID] = h.Value
				}
			}
		}
		if wanted(f) {
			return
		}
	}
}

// ended waits for the status of a stream.
func (c *client) ended(id uint32) string {
	c.t.Helper()
	if c.status[id] == "" {
		c.until(func(http2.Frame) bool { return c.status[id] != "" })
	}
	return c.status[id]
}

// echo sends back what it receives, and replies with the status 0, or 1 after an error.
func echo(s *Stream) {
	_, err := io.Copy(struct{ io.Writer }{s}, struct{ io.Reader }{s})
	code := 0
	if err != nil {
		code = 1
	}
	s.Finish(code, "")
}

func TestStreams(t *testing.T) {
	c := newClient(t, echo)
	for id := uint32(1); id < 200; id += 4 { // two at a time; coroutines are reused
		c.open(id, false)
		c.open(id+2, false)
		c.send(id, "", false) // is not the end
		c.send(id, "a", false)
		c.send(id+2, "b", true)
		c.send(id, "c", true)
		assert.Equal(t, "0", c.ended(id))
		assert.Equal(t, "0", c.ended(id+2))
		assert.Equal(t, []string{"ac", "b"}, []string{c.data[id], c.data[id+2]})
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	assert.Len(t, c.conn.idle, 2)
}

// A client that reads slowly stops only its own streams, and only until it allows more data.
func TestResponsesWaitForTheClient(t *testing.T) {
	const size = 300_000
	c := newClient(t, func(s *Stream) {
		if s.Path == "/a" {
			_, _ = s.Write(bytes.Repeat([]byte("x"), size))
		}
		s.Finish(0, "")
	})
	require.NoError(t, c.WriteWindowUpdate(0, 1<<20))
	c.open(1, true)
	c.until(func(http2.Frame) bool { return len(c.data[1]) == startWindow })
	c.open(3, true, "POST", "/b")
	for len(c.data[1]) < size {
		require.NoError(t, c.WriteWindowUpdate(1, 50_000))
		next := min(len(c.data[1])+50_000, size)
		c.until(func(http2.Frame) bool { return len(c.data[1]) == next })
	}
	assert.Equal(t, "0", c.ended(1))
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	c.open(5, true)
	c.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: size}))
	assert.Equal(t, "0", c.ended(5))
	assert.Len(t, c.data[5], size)
}

// A handler that waits for something else leaves the connection to another goroutine. It is informed if the client ends the stream.
func TestDetach(t *testing.T) {
	for _, reset := range []bool{false, true} {
		waits, ends := make(chan struct{}), make(chan struct{})
		c := newClient(t, func(s *Stream) {
			if s.Path == "/waits" {
				gone := make(chan struct{})
				s.Detach(func() { close(gone) })
				close(waits)
				<-gone
				defer close(ends)
			}
			echo(s)
		})
		c.open(1, false, "POST", "/waits")
		<-waits
		c.open(3, false)
		c.send(3, "x", true)
		assert.Equal(t, "0", c.ended(3))
		if reset {
			require.NoError(t, c.WriteRSTStream(1, http2.ErrCodeCancel))
		} else {
			c.send(1, "y", true)
			assert.Equal(t, "0", c.ended(1))
			assert.Equal(t, "y", c.data[1])
		}
		<-ends
		c.open(5, true)
		assert.Equal(t, "0", c.ended(5))
	}
}

// The reads and writes of a stream fail after it was reset or aborted, or the connection has ended.
func TestStreamsEnd(t *testing.T) {
	errTime := errors.New("its time is over")
	for name, c := range map[string]struct {
		end   func(c *client, s *Stream)
		read  error
		write error
	}{
		"reset":   {func(c *client, _ *Stream) { require.NoError(t, c.WriteRSTStream(1, http2.ErrCodeCancel)) }, ErrGone, ErrGone},
		"closed":  {func(c *client, _ *Stream) { _ = c.net.Close() }, ErrGone, ErrGone},
		"Close":   {func(c *client, _ *Stream) { c.conn.Close() }, ErrGone, ErrGone},
		"aborted": {func(_ *client, s *Stream) { s.Abort(errTime) }, errTime, nil},
	} {
		streams, errs := make(chan *Stream, 1), make(chan error, 2)
		cl := newClient(t, func(s *Stream) {
			streams <- s
			_, err := s.Read(make([]byte, 1))
			errs <- err
			_, err = s.Write([]byte("x"))
			errs <- err
			s.Finish(0, "")
		})
		cl.open(1, false)
		c.end(cl, <-streams)
		assert.ErrorIs(t, <-errs, c.read, name)
		assert.ErrorIs(t, <-errs, c.write, name)
	}
}

// Streams whose handlers do not read their data block no other stream.
func TestUnreadStreams(t *testing.T) {
	ends := make(chan struct{})
	c := newClient(t, func(s *Stream) {
		if s.Path == "/unread" {
			s.Detach(func() {})
			<-ends
		}
		echo(s)
	})
	defer close(ends)
	window := startWindow
	c.until(func(f http2.Frame) bool {
		w, ok := f.(*http2.WindowUpdateFrame)
		if ok {
			window += int(w.Increment)
		}
		return ok
	})
	full := strings.Repeat("x", maxFrame)
	id := uint32(1)
	for ; id < 2*MaxStreams-1; id += 2 {
		c.open(id, false, "POST", "/unread")
		for range StreamWindow / maxFrame {
			c.send(id, full, false)
			window -= maxFrame
		}
	}
	c.open(id, false)
	for range 1000 {
		require.GreaterOrEqual(t, window, StreamWindow, "the client is allowed to send")
		for range StreamWindow / 2 / maxFrame {
			c.send(id, full, false)
			window -= maxFrame
		}
		c.until(func(f http2.Frame) bool {
			if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == 0 {
				window += int(w.Increment)
			}
			return len(c.data[id]) == StreamWindow/2
		})
		require.NoError(t, c.WriteWindowUpdate(0, StreamWindow/2))
		require.NoError(t, c.WriteWindowUpdate(id, StreamWindow/2))
		c.data[id] = ""
	}
	c.send(id, "", true)
	assert.Equal(t, "0", c.ended(id))
}

// What a client must not do ends its stream or its connection, by RFC 9113.
func TestErrorsOfTheClient(t *testing.T) {
	full := strings.Repeat("x", maxFrame)
	for name, c := range map[string]struct {
		frames func(c *client)
		stream http2.ErrCode // of a RST_STREAM; 0 for none
		conn   http2.ErrCode // of a GOAWAY; 0 for none
	}{
		"more than a stream's window": {func(c *client) {
			for range StreamWindow/maxFrame + 1 {
				c.send(1, full, false)
			}
		}, http2.ErrCodeFlowControl, 0},
		"data after the end":       {func(c *client) { c.send(1, "x", true); c.send(1, "x", false) }, http2.ErrCodeStreamClosed, 0},
		"data of an unused stream": {func(c *client) { c.send(9, "x", false) }, 0, http2.ErrCodeProtocol},
		"headers in a stream":      {func(c *client) { c.open(1, false) }, http2.ErrCodeProtocol, 0},
		"an old stream":            {func(c *client) { c.open(5, false); c.open(3, false) }, 0, http2.ErrCodeStreamClosed},
		"an even stream":           {func(c *client) { c.open(2, false) }, 0, http2.ErrCodeProtocol},
		"data of the server's":     {func(c *client) { c.open(3, false); c.send(2, "x", false) }, 0, http2.ErrCodeProtocol},
		"a reset of the server's":  {func(c *client) { c.open(3, false); _ = c.WriteRSTStream(2, 0) }, 0, http2.ErrCodeProtocol},
		"a window of the server's": {func(c *client) { c.open(3, false); _ = c.WriteWindowUpdate(2, 1) }, 0, http2.ErrCodeProtocol},
		"no path":                  {func(c *client) { c.open(3, false, "POST", "") }, http2.ErrCodeProtocol, 0},
		"no scheme":                {func(c *client) { c.open(3, false, "POST", "/a", "") }, http2.ErrCodeProtocol, 0},
		"a header of HTTP/1":       {func(c *client) { c.open(3, false, "POST", "/a", "http", "gzip") }, http2.ErrCodeProtocol, 0},
		"large headers":            {func(c *client) { c.headers(3, 64_000) }, http2.ErrCodeEnhanceYourCalm, 0},
		"very large headers":       {func(c *client) { c.headers(3, 66_000) }, 0, http2.ErrCodeProtocol},
		"a large frame":            {func(c *client) { c.send(1, full+"x", false) }, 0, http2.ErrCodeFrameSize},
		"a large window":           {func(c *client) { _ = c.WriteWindowUpdate(1, maxWindow) }, http2.ErrCodeFlowControl, 0},
		"a large common window":    {func(c *client) { _ = c.WriteWindowUpdate(0, maxWindow) }, 0, http2.ErrCodeFlowControl},
		"an unused window":         {func(c *client) { _ = c.WriteWindowUpdate(9, 1) }, 0, http2.ErrCodeProtocol},
		"a promise": {func(c *client) {
			_ = c.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, 0, http2.ErrCodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			ends := make(chan struct{})
			cl := newClient(t, func(s *Stream) {
				s.Detach(func() {})
				<-ends
				s.Finish(0, "")
			})
			defer close(ends)
			cl.AllowIllegalWrites = true
			cl.open(1, false)
			c.frames(cl)
			cl.until(func(f http2.Frame) bool {
				switch f := f.(type) {
				case *http2.RSTStreamFrame:
					assert.Equal(t, c.stream, f.ErrCode)
					return true
				case *http2.GoAwayFrame:
					assert.Equal(t, c.conn, f.ErrCode)
					return true
				}
				return false
			})
		})
	}
}

// headers starts a stream with headers of a size, in as many frames as they need.
func (c *client) headers(id uint32, size int) {
	fields := []string{":method", "POST", ":path", "/a", ":scheme", "http"}
	for i := range size / 1000 {
		fields = append(fields, fmt.Sprintf("h%d", i), strings.Repeat("~", 1000))
	}
	all := c.head(fields...)
	first := min(maxFrame, len(all))
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: all[:first], EndHeaders: first == len(all)})
	for all = all[first:]; len(all) > 0; { // fails when the connection is closed
		n := min(maxFrame, len(all))
		_ = c.WriteContinuation(id, n == len(all), all[:n])
		all = all[n:]
	}
}

// A connection announces how many streams it can have, and how large their headers. Further streams can be sent again elsewhere.
func TestStreamsAreBounded(t *testing.T) {
	c := newClient(t, echo)
	c.until(func(f http2.Frame) bool {
		announced, ok := f.(*http2.SettingsFrame)
		if !ok {
			return false
		}
		for setting, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: MaxStreams, http2.SettingMaxHeaderListSize: MaxHeaders} {
			got, _ := announced.Value(setting)
			assert.Equal(t, want, got, setting)
		}
		return true
	})
	for i := range uint32(MaxStreams + 1) {
		c.open(2*i+1, false)
	}
	c.until(func(f http2.Frame) bool {
		reset, ok := f.(*http2.RSTStreamFrame)
		return ok && assert.Equal(t, http2.ErrCodeRefusedStream, reset.ErrCode) && assert.EqualValues(t, 2*MaxStreams+1, reset.StreamID)
	})
	c.send(1, "", true)
	assert.Equal(t, "0", c.ended(1))
	c.open(2*MaxStreams+3, true)
	assert.Equal(t, "0", c.ended(2*MaxStreams+3), "another has ended")
}

// A connection that is shut down serves the open streams and those that the client opens before it knows.
func TestLeave(t *testing.T) {
	c := newClient(t, echo)
	c.open(1, false)
	c.send(1, "a", false)
	c.until(func(http2.Frame) bool { return c.data[1] == "a" })
	c.conn.Leave()
	c.open(3, true)
	var pinged *http2.PingFrame
	c.until(func(f http2.Frame) bool {
		if g, ok := f.(*http2.GoAwayFrame); ok {
			assert.EqualValues(t, maxWindow, g.LastStreamID)
		}
		if p, ok := f.(*http2.PingFrame); ok {
			pinged = p
		}
		return pinged != nil && c.status[3] == "0"
	})
	require.NoError(t, c.WritePing(true, pinged.Data))
	c.open(5, true)
	c.until(func(f http2.Frame) bool {
		if g, ok := f.(*http2.GoAwayFrame); ok {
			assert.EqualValues(t, 3, g.LastStreamID)
		}
		reset, ok := f.(*http2.RSTStreamFrame)
		return ok && assert.Equal(t, http2.ErrCodeRefusedStream, reset.ErrCode)
	})
	c.send(1, "", true)
	assert.Equal(t, "0", c.ended(1))
	_, err := c.ReadFrame()
	assert.ErrorIs(t, err, io.EOF, "the connection is closed after the last stream")
}

// The first frame of a server is its settings (RFC 9113, 3.4), also of one that leaves before the client has started.
func TestLeaveBeforeTheStart(t *testing.T) {
	here, there := net.Pipe()
	require.NoError(t, here.SetDeadline(time.Now().Add(patience)))
	conn := New(there, echo)
	conn.Leave()
	served := serve(conn)
	_, err := io.WriteString(here, http2.ClientPreface)
	require.NoError(t, err)
	client := http2.NewFramer(io.Discard, here)
	var types []http2.FrameType
	for range 4 {
		f, err := client.ReadFrame()
		require.NoError(t, err)
		types = append(types, f.Header().Type)
	}
	assert.Equal(t, []http2.FrameType{http2.FrameSettings, http2.FrameWindowUpdate, http2.FrameGoAway, http2.FramePing}, types)
	require.NoError(t, here.Close())
	<-served
}

// A connection starts with the preface of HTTP/2 and settings. A client of HTTP/1 gets a response.
func TestStart(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"HTTP/1.0":    {"GET / HTTP/1.0\r\n\r\n", onlyHTTP2}, // shorter than the preface
		"HTTP/1.1":    {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", onlyHTTP2},
		"other":       {"PRI * HTTP/2.0\r\n\r\nHALLO", ""},
		"no settings": {http2.ClientPreface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", "goaway"},
	} {
		here, there := net.Pipe()
		ended := serve(New(there, echo))
		go func() { _, _ = io.WriteString(here, c.text) }()
		got, _ := io.ReadAll(here)
		<-ended
		if c.want == "goaway" {
			assert.Contains(t, string(got), "\x07\x00\x00\x00\x00\x00", name)
		} else {
			assert.Equal(t, c.want, string(got), name)
		}
		assert.NoError(t, here.Close(), name)
	}
}

// Streams that can send again do not wait for one of them that waits for something else.
func TestDetachOfAWriter(t *testing.T) {
	const streams = 8
	release := make(chan struct{})
	c := newClient(t, func(s *Stream) {
		_, _ = s.Write([]byte("x"))
		s.Detach(func() {})
		<-release
		s.Finish(0, "")
	})
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	for i := range uint32(streams) {
		c.open(2*i+1, true)
	}
	require.NoError(t, c.WriteSettings(
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2}))
	for range 100 { // read by other goroutines, into the same buffer as the settings
		require.NoError(t, c.WritePing(false, [8]byte{}))
	}
	c.until(func(http2.Frame) bool { return len(c.data) == streams })
	close(release)
	for i := range uint32(streams) {
		c.ended(2*i + 1)
	}
}

// A stream that waits for data holds no buffer.
func TestBuffersAreFreed(t *testing.T) {
	c := newClient(t, echo)
	for i, size := range []int{1000, maxFrame} {
		id := uint32(2*i + 1)
		c.open(id, false)
		c.send(id, strings.Repeat("x", size), false)
		c.until(func(http2.Frame) bool { return len(c.data[id]) == size })
		c.conn.mu.Lock()
		assert.Nil(t, c.conn.streams[id].received)
		assert.Len(t, c.conn.buffers, 1)
		c.conn.mu.Unlock()
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	large := &Stream{}
	c.conn.keep(large, make([]byte, 3*maxFrame))
	c.conn.free(large)
	assert.Empty(t, c.conn.buffers, "too large to be kept")
}

// A silent client gets a PING. The connection is closed if it does not reply. A reply that is read just after the timeout counts: this
// process may have been stopped until then.
func TestSilence(t *testing.T) {
	for _, replies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			start, ended := time.Now(), serve(New(there, echo))
			fr, pings := http2.NewFramer(here, here), 0
			go io.WriteString(here, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
			for pings < 100 {
				f, err := fr.ReadFrame()
				if err != nil {
					break
				}
				if p, ok := f.(*http2.PingFrame); ok {
					if pings++; replies {
						time.Sleep(pingTimeout + graceTime/2)
						require.NoError(t, fr.WritePing(true, p.Data))
					}
				}
			}
			_ = here.Close()
			<-ended
			if replies {
				assert.Equal(t, 100, pings)
			} else {
				assert.Equal(t, 1, pings)
				assert.Equal(t, 3*pingTimeout+graceTime, time.Since(start))
			}
		})
	}
}
