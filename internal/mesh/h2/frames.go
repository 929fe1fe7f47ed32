package h2

import (
	"bytes"
	"errors"

	"golang.org/x/net/http2"
)

// handle processes a frame. A StreamError ends a stream, another error the connection.
func (c *Conn) handle(r *reader, f http2.Frame) error {
	if !c.started {
		if s, ok := f.(*http2.SettingsFrame); !ok || s.IsAck() {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.started = true
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.headers(r, f)
	case *http2.DataFrame:
		return c.data(r, f)
	case *http2.WindowUpdateFrame:
		return c.widen(r, f)
	case *http2.RSTStreamFrame:
		s := c.streams[f.StreamID]
		if c.unused(f.StreamID) {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		if s != nil {
			s.fail(r)
		}
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if err := errors.Join(f.ForeachSetting(c.set), c.framer.WriteSettingsAck()); err != nil {
			return err
		}
		c.unblock(r) // last: another goroutine may then read the next frame into f
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.framer.WritePing(true, f.Data)
		}
		if c.leaving == notified && f.Data == pingLeave {
			c.leaving = refusing
			err := c.framer.WriteGoAway(c.last, http2.ErrCodeNo, nil)
			c.closeIfLeft()
			return err
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

// unused reports whether no stream with the ID was opened. Only clients open streams, with odd IDs.
func (c *Conn) unused(id uint32) bool { return id > c.last || id%2 == 0 }

func (c *Conn) set(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.encoder.SetMaxDynamicTableSizeLimit(min(s.Val, 4096))
	case http2.SettingInitialWindowSize:
		more := int64(s.Val) - c.initial
		c.initial = int64(s.Val)
		for _, s := range c.streams {
			if s.window += more; s.window > maxWindow {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
		}
	}
	return nil
}

// headers starts a stream, or ends the client's side of one with its trailers.
func (c *Conn) headers(r *reader, f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if s := c.streams[id]; s != nil {
		switch {
		case s.ended:
			return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
		case !f.StreamEnded() || len(f.PseudoFields()) > 0:
			return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
		}
		s.end()
		c.resume(r, s)
		return nil
	}
	switch {
	case id%2 == 0:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case id <= c.last:
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	}
	c.last = id
	switch {
	case len(c.streams) >= MaxStreams || c.leaving == refusing:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	case f.Truncated:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeEnhanceYourCalm}
	case malformed(f):
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	s := &Stream{Path: f.PseudoValue("path"), conn: c, id: id, window: c.initial, room: StreamWindow}
	if f.StreamEnded() {
		s.end()
	}
	c.streams[id] = s
	if n := len(c.idle); n > 0 {
		s.coroutine, c.idle = c.idle[n-1], c.idle[:n-1]
	} else {
		s.coroutine = newCoroutine(c.handler)
	}
	s.coroutine.stream = s
	c.resume(r, s)
	return nil
}

// malformed reports whether a request is malformed by section 8 of RFC 9113. The framer has checked each name and value.
func malformed(f *http2.MetaHeadersFrame) bool {
	if f.PseudoValue("method") == "" || f.PseudoValue("scheme") == "" || f.PseudoValue("path") == "" {
		return true
	}
	for _, h := range f.RegularFields() {
		switch h.Name {
		case "connection", "proxy-connection", "keep-alive", "upgrade", "transfer-encoding":
			return true
		case "te":
			if h.Value != "trailers" {
				return true
			}
		}
	}
	return false
}

func (c *Conn) data(r *reader, f *http2.DataFrame) error {
	n := int64(f.Length) // including padding
	s := c.streams[f.StreamID]
	switch {
	case c.unused(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil || s.ended || s.err != nil:
		c.consumed(nil, n)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if s.room -= n; s.room < 0 {
		c.consumed(nil, n)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	c.keep(s, f.Data())
	c.consumed(s, n-int64(len(f.Data())))
	if f.StreamEnded() {
		s.end()
	}
	c.resume(r, s)
	return nil
}

// keep keeps data until the handler reads it.
func (c *Conn) keep(s *Stream, data []byte) {
	if len(data) == 0 {
		return // a read of an empty buffer would be the end of the stream
	}
	if s.received == nil {
		s.received = &bytes.Buffer{}
		if n := len(c.buffers); n > 0 {
			s.received, c.buffers = c.buffers[n-1], c.buffers[:n-1]
		}
	}
	s.received.Write(data)
}

// reset ends a stream after an error of the client.
func (c *Conn) reset(r *reader, broken http2.StreamError) error {
	if s := c.streams[broken.StreamID]; s != nil {
		s.fail(r)
	} else if broken.StreamID > c.last { // its headers are malformed
		c.last = broken.StreamID
	}
	return c.framer.WriteRSTStream(broken.StreamID, broken.Code)
}

// widen increases a send window.
func (c *Conn) widen(r *reader, f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if c.window += int64(f.Increment); c.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.unblock(r)
		return nil
	}
	s := c.streams[f.StreamID]
	switch {
	case c.unused(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		return nil
	}
	if s.window += int64(f.Increment); s.window > maxWindow {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	if s.blocked {
		c.resume(r, s)
	}
	return nil
}
