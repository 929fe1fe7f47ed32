package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/test/memnet"
)

// anyMessage returns one of the messages that Envoy can send.
func anyMessage(rng *rand.Rand, m mode) *ext.ProcessingRequest {
	messages := []func(m mode) *ext.ProcessingRequest{
		func(m mode) *ext.ProcessingRequest { return m.headers(rng.IntN(2) == 0) },
		func(mode) *ext.ProcessingRequest {
			return requestPart(posted[:rng.IntN(len(posted))], rng.IntN(2) == 0)
		},
		func(mode) *ext.ProcessingRequest { return requestPart(posted, rng.IntN(2) == 0) },
		func(mode) *ext.ProcessingRequest { return endOfRequest },
		func(mode) *ext.ProcessingRequest {
			return responseHead(address(rng.IntN(5)), rng.IntN(2) == 0, []string{"200", "503", "x"}[rng.IntN(3)])
		},
		func(mode) *ext.ProcessingRequest { return responsePart("x", rng.IntN(2) == 0) },
		func(mode) *ext.ProcessingRequest { return endOfResponse },
		func(mode) *ext.ProcessingRequest { return &ext.ProcessingRequest{} },
	}
	return messages[rng.IntN(len(messages))](m)
}

// peer is a client of HTTP/2 that writes frames and does not look at the responses.
type peer struct {
	net    net.Conn
	frames *http2.Framer
	rng    *rand.Rand
	fields bytes.Buffer
	hpack  *hpack.Encoder
	last   uint32            // ID of the last stream
	unsent map[uint32][]byte // of open streams
}

// dialPeer starts a connection. Some peers allow few bytes, and some do not read.
func (f *fixture) dialPeer(rng *rand.Rand, wg *sync.WaitGroup) *peer {
	nc, err := net.Dial("tcp", f.address)
	require.NoError(f.t, err)
	p := &peer{net: nc, frames: http2.NewFramer(nc, nil), rng: rng, unsent: map[uint32][]byte{}}
	p.frames.AllowIllegalWrites = true
	p.hpack = hpack.NewEncoder(&p.fields)
	_, _ = io.WriteString(nc, http2.ClientPreface)
	_ = p.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 10, 1000, 1 << 20}[rng.IntN(4)]})
	if rng.IntN(4) > 0 {
		wg.Go(func() { _, _ = io.Copy(io.Discard, nc) })
	}
	return p
}

// open starts a stream with a few messages to send.
func (p *peer) open() {
	p.last += 2
	p.fields.Reset()
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: processMethod}} {
		_ = p.hpack.WriteField(f)
	}
	_ = p.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: p.last, BlockFragment: p.fields.Bytes(), EndHeaders: true})
	m := []mode{bufferedMode, duplexMode, partialMode}[p.rng.IntN(3)]
	messages := []*ext.ProcessingRequest{m.headers(p.rng.IntN(3) == 0)}
	for range p.rng.IntN(5) {
		messages = append(messages, anyMessage(p.rng, m))
	}
	all := []byte{}
	for _, m := range messages {
		b, _ := proto.Marshal(m)
		all = append(binary.BigEndian.AppendUint32(append(all, 0), uint32(len(b))), b...)
	}
	p.unsent[p.last] = all
}

// step does one thing that a client can do.
func (p *peer) step() {
	if len(p.unsent) == 0 || p.rng.IntN(6) == 0 {
		p.open()
	}
	for id, all := range p.unsent { // one of them
		switch n := p.rng.IntN(len(all) + 1); p.rng.IntN(12) {
		case 0:
			_ = p.frames.WriteRSTStream(id, http2.ErrCodeCancel)
			delete(p.unsent, id)
		case 1:
			_ = p.frames.WriteData(id, true, all[:n])
			delete(p.unsent, id)
		case 2:
			_ = p.frames.WriteDataPadded(id, false, all[:n], make([]byte, p.rng.IntN(200)))
			p.unsent[id] = all[n:]
		case 3:
			_ = p.frames.WriteWindowUpdate(id, 1+p.rng.Uint32N(100))
		case 4:
			_ = p.frames.WriteWindowUpdate(0, 1+p.rng.Uint32N(100))
		case 5:
			_ = p.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: p.rng.Uint32N(1000)},
				http2.Setting{ID: http2.SettingHeaderTableSize, Val: p.rng.Uint32N(5000)})
		case 6:
			_ = p.frames.WritePing(p.rng.IntN(2) == 0, [8]byte{})
		case 7:
			_ = p.frames.WriteData(id, false, nil)
		default:
			_ = p.frames.WriteData(id, false, all[:n])
			p.unsent[id] = all[n:]
		}
		return
	}
}

// Whatever clients send and whenever they disconnect, all handlers end, also after a panic, and return what they reserved.
// Each request has one record, and its lease ends.
func TestHistories(t *testing.T) {
	const clients, conns, steps = 8, 12, 80
	f := newFixture(t, 3, nil)
	f.server.cfg.ErrorLog = log.New(io.Discard, "", 0)
	var mu sync.Mutex
	served, panics := 0, 0
	f.server.cfg.Filter = func() (*Filter, func()) {
		mu.Lock()
		defer mu.Unlock()
		if served++; served%50 == 0 {
			panics++
			panic("a fault")
		}
		return f.filter, func() {}
	}
	var wg sync.WaitGroup
	for i := range uint64(clients) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, i))
			for range conns {
				p := f.dialPeer(rng, &wg)
				p.last = ^uint32(0) // the first stream is 1
				for range rng.IntN(steps) {
					p.step()
				}
				if rng.IntN(2) == 0 {
					_ = p.net.(*net.TCPConn).SetLinger(0) // a reset
				}
				_ = p.net.Close()
			}
		})
	}
	wg.Wait()
	f.stop()
	assert.Empty(t, f.server.open, "streams")
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	assert.Empty(t, f.server.conns)
	assert.Empty(t, f.server.origins)
	assert.Greater(t, panics, 2)
	records := f.records.All()
	assert.Greater(t, len(records), clients*conns)
	seen := map[*record.Job]bool{}
	for _, j := range records {
		assert.False(t, seen[j], "recorded twice")
		seen[j] = true
		assert.NotEqual(t, intake.Broken, j.Outcome)
		for _, a := range j.Attempts {
			assert.NotZero(t, a.End, "an attempt without an end")
		}
	}
}

// Shutdown does not wait longer than its context for a client that does not read.
func TestShutdownOfAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		s, l := NewServer(ServerConfig{Budget: intake.NewBudget(1<<20, 0), Streams: 1}), network.Listen("mesh:1")
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		here, err := network.Dial(t.Context(), "tcp", "mesh:1")
		require.NoError(t, err)
		_, err = io.WriteString(here, http2.ClientPreface)
		require.NoError(t, err)
		_, err = here.Read(make([]byte, 1)) // of the settings: the rest blocks
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		assert.ErrorIs(t, s.Shutdown(ctx), context.Canceled)
		assert.NoError(t, <-ended)
		assert.Zero(t, time.Since(start))
	})
}
