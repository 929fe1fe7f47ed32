// Package h2 serves HTTP/2 connections with few switches between goroutines: a stream's handler runs as a coroutine of
// the goroutine that reads the connection. The handler runs when a frame of its stream arrives, until it waits for the
// next frame. What all handlers write while the received frames are processed is sent in one system call.
//
// A handler that waits for something else first calls Detach: another goroutine then reads the connection, and this
// goroutine ends when the handler waits for its next frame. net/http's server has two goroutines for each connection and
// one for each stream, and switches six times for each message.
//
// Frames and headers are parsed by golang.org/x/net/http2. Only the path of a request's headers is used.
package h2

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Bounds of a connection. MaxStreams is the number of concurrent streams; MaxHeaders is the size of a
// stream's headers. StreamWindow is the receive window of a stream, connWindow that of the connection. connWindow has room for the
// full windows of all streams, so a stream that is not read blocks no other, and for one window of bytes that are read but not yet
// granted again.
const (
	MaxStreams   = 250
	MaxHeaders   = 64 << 10
	StreamWindow = 64 << 10
	connWindow   = (MaxStreams + 1) * StreamWindow
	startWindow  = 1<<16 - 1 // until the client's settings arrive (RFC 9113)
	maxWindow    = 1<<31 - 1
	maxFrame     = 16 << 10 // size of a frame in either direction, without its header
	maxUnsent    = 64 << 10 // bytes after which written frames are sent at once
	maxIdle      = 32       // coroutines that are kept for later streams
	maxBuffers   = 8        // buffers that are kept for received data
)

// Timeouts of a connection. startTimeout bounds the exchange of the prefaces, writeTimeout each write. If nothing has
// arrived for one to two times pingTimeout, the client gets a PING. If nothing arrives in the next pingTimeout and graceTime
// either, the connection is closed. In graceTime, a process that was stopped can read a reply that arrived while it was stopped.
const (
	startTimeout = 10 * time.Second
	writeTimeout = time.Minute
	pingTimeout  = 30 * time.Second
	graceTime    = time.Second
)

// The data of PING frames.
var (
	pingAlive = [8]byte{'a', 'l', 'i', 'v', 'e'}
	pingLeave = [8]byte{'l', 'e', 'a', 'v', 'e'}
)

// onlyHTTP2 is the response to a client of HTTP/1.
const onlyHTTP2 = "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis port serves only gRPC over HTTP/2.\n"

// ErrGone is the error of reads and writes after the client has reset the stream, or the connection has ended.
var ErrGone = errors.New("the client has reset the stream, or the connection has ended")

// Conn is one connection. A stream's handler runs while a frame for it is processed; mu is not held then.
type Conn struct {
	net     net.Conn
	handler func(*Stream)
	framer  *http2.Framer // reads from in, writes to out

	mu      sync.Mutex
	out     bytes.Buffer // frames to send
	fields  bytes.Buffer // encoded headers
	encoder *hpack.Encoder
	streams map[uint32]*Stream // streams whose handlers have not returned
	idle    []*coroutine
	buffers []*bytes.Buffer // empty
	writers []*Stream       // streams that can send again
	silence *time.Timer     // calls ping; nil before the client has started the connection
	silent  int             // calls of ping since the last received bytes
	last    uint32          // highest ID of the streams so far
	started bool            // the client's settings were received
	leaving leaving
	closed  bool
	unread  bool          // nobody reads the connection any more
	ended   chan struct{} // closed when nobody reads the connection and all handlers have returned

	window    int64 // send window of the connection
	initial   int64 // send window of a new stream
	ungranted int64 // bytes of all streams that were read and not yet granted again
}

// leaving is the state of a shutdown of a connection. The client can open streams until it has received the GOAWAY
// frame, so the last stream's ID is known when it has replied to a PING.
type leaving uint8

const (
	staying  leaving = iota
	notified         // GOAWAY and PING were sent
	refusing         // new streams are refused; the connection is closed after the last stream
)

// New returns a connection over nc, which can be a TLS connection. Serve starts it. handler serves a stream;
// the stream has ended when it returns.
func New(nc net.Conn, handler func(*Stream)) *Conn {
	c := &Conn{
		net: nc, handler: handler, streams: map[uint32]*Stream{}, ended: make(chan struct{}),
		window: startWindow, initial: startWindow,
	}
	c.framer = http2.NewFramer(&c.out, bufio.NewReaderSize(flushing{c}, 2*maxFrame))
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.framer.MaxHeaderListSize = MaxHeaders
	c.encoder = hpack.NewEncoder(&c.fields)
	return c
}

// flushing reads from the connection, and flushes the written frames before a read that could block.
type flushing struct{ *Conn }

func (f flushing) Read(p []byte) (int, error) {
	f.mu.Lock()
	f.flush()
	f.silent = 0
	f.mu.Unlock()
	return f.net.Read(p)
}

// Serve starts the connection, and returns when it is closed and all handlers have returned.
func (c *Conn) Serve() {
	if err := c.start(); err != nil {
		c.mu.Lock()
		c.end(err)
		c.mu.Unlock()
	} else {
		c.read()
	}
	<-c.ended
}

// start exchanges the prefaces of HTTP/2.
func (c *Conn) start() error {
	preface := make([]byte, len(http2.ClientPreface))
	if err := c.net.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	const method = 4 // length of "PRI ", the start of the preface; no request of HTTP/1 starts with it
	if _, err := io.ReadFull(c.net, preface[:method]); err != nil {
		return err
	}
	if string(preface[:method]) != http2.ClientPreface[:method] {
		_, _ = c.net.Read(make([]byte, 4<<10)) // unread data would reset the connection before the client has the response
		_, err := io.WriteString(c.net, onlyHTTP2)
		return errors.Join(errNoHTTP2, err)
	}
	if _, err := io.ReadFull(c.net, preface[method:]); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return errNoHTTP2
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silence = time.AfterFunc(pingTimeout, c.ping)
	err := errors.Join(
		c.net.SetReadDeadline(time.Time{}),
		c.framer.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: MaxStreams},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: StreamWindow},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: MaxHeaders},
		),
		c.framer.WriteWindowUpdate(0, connWindow-startWindow),
	)
	if c.leaving == notified {
		c.goAway()
	}
	return err
}

var errNoHTTP2 = errors.New("the client does not use HTTP/2")

// ping sends a PING if nothing was received for a while, and closes the connection if nothing was received after a PING.
func (c *Conn) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	next := pingTimeout
	switch c.silent++; c.silent {
	case 2:
		_ = c.framer.WritePing(false, pingAlive) // to a buffer
		c.flush()
	case 3:
		next = graceTime
	case 4:
		c.close()
		return
	}
	c.silence.Reset(next)
}

// reader is a goroutine that reads the connection. Its state is guarded by the connection's mutex.
type reader struct{ replaced bool }

// reads reports whether it still reads the connection.
func (r *reader) reads() bool { return r != nil && !r.replaced }

// read reads frames until the connection ends or another goroutine reads it.
func (c *Conn) read() {
	r := &reader{}
	c.mu.Lock()
	for c.runWriters(r); r.reads(); {
		c.mu.Unlock()
		f, err := c.framer.ReadFrame()
		c.mu.Lock()
		if err == nil {
			err = c.handle(r, f)
		}
		if broken, ok := errors.AsType[http2.StreamError](err); ok {
			err = c.reset(r, broken)
		}
		if err != nil {
			c.end(err)
			break
		}
	}
	c.mu.Unlock()
}

// free takes the buffer from a stream whose handler has read all data, because a stream can be open for hours.
func (c *Conn) free(s *Stream) {
	if s.received.Reset(); s.received.Cap() <= 2*maxFrame && len(c.buffers) < maxBuffers {
		c.buffers = append(c.buffers, s.received)
	}
	s.received = nil
}

// consumed reopens the windows by n bytes that were read; s is their stream, or nil if it has ended.
func (c *Conn) consumed(s *Stream, n int64) {
	c.grant(0, &c.ungranted, n, StreamWindow)
	if s != nil && !s.ended {
		s.room += c.grant(s.id, &s.ungranted, n, StreamWindow/2)
	}
}

// grant adds n bytes that were read to ungranted, and sends a WINDOW_UPDATE for them if they are at least worth bytes.
func (c *Conn) grant(id uint32, ungranted *int64, n, worth int64) (more int64) {
	if *ungranted += n; *ungranted < worth {
		return 0
	}
	more, *ungranted = *ungranted, 0
	_ = c.framer.WriteWindowUpdate(id, uint32(more)) //nolint:gosec // at most two windows of a stream
	return more
}

// closeIfLeft closes the connection if the last stream of a shutdown has ended.
func (c *Conn) closeIfLeft() {
	switch {
	case len(c.streams) > 0:
	case c.unread:
		close(c.ended)
	case c.leaving == refusing:
		c.flush()
		c.close()
	}
}

// flush sends the written frames. mu is held.
func (c *Conn) flush() {
	if c.out.Len() == 0 || c.closed {
		c.out.Reset()
		return
	}
	_ = c.net.SetWriteDeadline(time.Now().Add(writeTimeout)) // if it fails, so does the write
	if _, err := c.net.Write(c.out.Bytes()); err != nil {
		c.close()
	}
	if c.out.Reset(); c.out.Cap() > 4*maxUnsent {
		c.out = bytes.Buffer{}
	}
}

// close closes the connection. The reader then ends the streams. mu is held.
func (c *Conn) close() {
	if !c.closed {
		c.closed = true
		_ = c.net.Close() // an error does not matter
	}
}

// end closes the connection and ends its streams. mu is held.
func (c *Conn) end(err error) {
	code, broken := errors.AsType[http2.ConnectionError](err)
	if errors.Is(err, http2.ErrFrameTooLarge) {
		code, broken = http2.ConnectionError(http2.ErrCodeFrameSize), true
	}
	if broken {
		_ = c.framer.WriteGoAway(c.last, http2.ErrCode(code), nil) // to a buffer
		c.flush()
	}
	c.close()
	if c.silence != nil {
		c.silence.Stop()
	}
	for _, s := range slices.Collect(maps.Values(c.streams)) {
		s.fail(nil)
	}
	for _, one := range c.idle {
		one.stop()
	}
	c.idle, c.unread = nil, true
	c.closeIfLeft()
}

// Leave lets the open streams end, and then closes the connection. Before the client has started it, GOAWAY has to
// wait: settings are the first frame.
func (c *Conn) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving == staying {
		c.leaving = notified
		if c.silence != nil {
			c.goAway()
			c.flush()
		}
	}
}

// goAway writes GOAWAY and PING to the buffer.
func (c *Conn) goAway() {
	_ = c.framer.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
	_ = c.framer.WritePing(false, pingLeave)
}

// Close closes the connection at once, also while a write to it blocks. The reader then ends the streams.
func (c *Conn) Close() { _ = c.net.Close() } // fails if it is closed
