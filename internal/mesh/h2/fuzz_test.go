package h2

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/net/http2"
)

// exchange returns what a client sends: it opens streams, sends data in pieces, and resets or ends them.
func exchange(frames func(fr *http2.Framer, open func(id uint32, path string))) []byte {
	var all bytes.Buffer
	fr, enc := http2.NewFramer(&all, nil), newEncoder()
	fr.AllowIllegalWrites = true
	_ = fr.WriteSettings()
	frames(fr, func(id uint32, path string) {
		block := enc.head(":method", "POST", ":scheme", "http", ":path", path)
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
	})
	return all.Bytes()
}

// A connection ends with all its handlers, whatever the client sends before it disconnects.
func FuzzConn(f *testing.F) {
	f.Add(exchange(func(fr *http2.Framer, open func(uint32, string)) {
		open(1, "/")
		_ = fr.WriteData(1, false, []byte("ab"))
		_ = fr.WriteDataPadded(1, true, []byte("c"), make([]byte, 3))
	}))
	f.Add(exchange(func(fr *http2.Framer, open func(uint32, string)) {
		open(1, "/detach")
		open(3, "/detach")
		_ = fr.WriteRSTStream(1, http2.ErrCodeCancel)
		_ = fr.WriteWindowUpdate(3, 1000)
		_ = fr.WriteData(3, true, nil)
		_ = fr.WritePing(false, [8]byte{1})
	}))
	f.Add(exchange(func(fr *http2.Framer, open func(uint32, string)) {
		_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		open(1, "/")
		open(3, "/detach")
		_ = fr.WriteData(1, true, []byte("abc"))
		_ = fr.WriteData(3, true, []byte("abc"))
		_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 9})
		_ = fr.WriteWindowUpdate(0, 5)
	}))
	f.Add(exchange(func(fr *http2.Framer, open func(uint32, string)) {
		open(1, "/")
		_ = fr.WritePriority(1, http2.PriorityParam{StreamDep: 3})
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true})
		_ = fr.WriteContinuation(1, true, nil)
		_ = fr.WriteGoAway(0, http2.ErrCodeNo, nil)
		open(1, "/")
	}))
	f.Fuzz(func(t *testing.T, frames []byte) {
		here, there := net.Pipe()
		var open atomic.Int64
		c := New(there, func(s *Stream) {
			open.Add(1)
			defer open.Add(-1)
			if s.Path == "/detach" {
				gone := make(chan struct{}, 1)
				s.Detach(func() {
					select {
					case gone <- struct{}{}:
					default:
					}
				})
				<-gone
			}
			echo(s)
		})
		ended := serve(c)
		go io.Copy(io.Discard, here)
		_, _ = io.WriteString(here, http2.ClientPreface)
		_, _ = here.Write(frames) // fails if they end the connection
		_ = here.Close()
		<-ended
		assert.Zero(t, open.Load(), "handlers run")
		assert.Empty(t, c.streams)
		assert.Empty(t, c.idle)
	})
}
