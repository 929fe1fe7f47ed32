package events

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/test/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publisher accepts connections like a PUB socket.
type publisher struct {
	net.Listener
	t *testing.T
}

func publish(t *testing.T, l net.Listener) *publisher {
	t.Cleanup(func() { l.Close() })
	return &publisher{l, t}
}

// accept makes the handshake, and returns the connection and the peer's topic.
func (p *publisher) accept() (net.Conn, string) {
	conn, err := p.Accept()
	require.NoError(p.t, err)
	p.t.Cleanup(func() { conn.Close() })
	written := make(chan error, 1)
	go func() { // both sides start with a greeting, and a pipe has no buffer
		_, err := conn.Write(append(slices.Clone(greeting), frame(command, "\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB")...))
		written <- err
	}()
	hello := make([]byte, 64+2+25+2)
	_, err = io.ReadFull(conn, hello)
	require.NoError(p.t, err)
	assert.Equal(p.t, greeting, hello[:64])
	topic := make([]byte, hello[len(hello)-1])
	_, err = io.ReadFull(conn, topic)
	require.NoError(p.t, err)
	require.NoError(p.t, <-written)
	return conn, string(topic)
}

// message encodes a message with a batch, in a long frame.
func message(sequence uint64, batch []byte) (m []byte) {
	m = append(m, frame(command, "\x04PING\x00\x00")...)
	m = append(m, frame(more, "topic")...)
	m = append(m, frame(more, string(binary.BigEndian.AppendUint64(nil, sequence)))...)
	m = append(m, long)
	return append(binary.BigEndian.AppendUint64(m, uint64(len(batch))), batch...)
}

// A reader follows a server until its context is done, and reconnects after an error.
func TestFollow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := publish(t, l)
	changes, failed, connected := make(chan []prompts.Change), make(chan string), make(chan string)
	r := New(Config{
		Settings:  Settings{Port: p.Addr().(*net.TCPAddr).Port, Topic: "kv"},
		Changed:   func(_ string, c []prompts.Change) { changes <- c },
		Counted:   func(string, bool) {},
		Connected: func(address string) { connected <- address },
		Failed:    func(_ string, err error) { failed <- err.Error() },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Follow(ctx, "127.0.0.1:8000") }()
	conn, topic := p.accept()
	assert.Equal(t, "\x01kv", topic)
	assert.Equal(t, "127.0.0.1:8000", <-connected)
	tokens := run(1, 128)
	stores := store(nil, []any{1, 2}, tokens...)
	stores["block_size"] = 64
	_, err = conn.Write(message(0, encode(t, false, stores)))
	require.NoError(t, err)
	assert.Equal(t, []prompts.Change{{Lost: true, Stored: keys(tokens)}}, <-changes)
	conn.Close()
	assert.Contains(t, <-failed, "events of the cache: EOF")
	conn, _ = p.accept()
	<-connected
	_, err = conn.Write(message(1, encode(t, true, map[string]any{"type": removed, "block_hashes": []any{2}})))
	require.NoError(t, err)
	assert.Equal(t, []prompts.Change{{Removed: keys(tokens)}}, <-changes, "nothing was missed")
	_, err = conn.Write(message(2, []byte{1}))
	require.NoError(t, err)
	assert.Contains(t, <-failed, "events of the cache: ")
	p.accept()
	<-connected
	cancel()
	<-done
	r.Follow(t.Context(), "unix:/run/socket") // returns at once: a Unix socket has no port for events
}

// A publisher of other messages is logged once, and not connected to without pauses.
func TestOtherMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		p := publish(t, network.Listen("127.0.0.1:5557"))
		failed := 0
		r := New(Config{
			Settings:  Settings{Port: 5557},
			Connected: func(string) {},
			Failed:    func(string, error) { failed++ },
			Dial:      network.Dial,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { r.Follow(ctx, "127.0.0.1:8000") })
		started := time.Now()
		for range 4 {
			conn, _ := p.accept()
			_, err := conn.Write(frame(0, "news"))
			require.NoError(t, err)
		}
		assert.Equal(t, (1+2+4)*minPause, time.Since(started))
		cancel()
		following.Wait()
		assert.Equal(t, 1, failed)
	})
}

// A peer that is not a PUB socket without security gives an error with the reason.
func TestHandshake(t *testing.T) {
	curve := slices.Clone(greeting)
	copy(curve[12:], "CURVE")
	for sent, want := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n": "no ZeroMQ greeting",
		string(make([]byte, 64)):       "not a ZeroMQ socket",
		string(curve):                  `requires the security mechanism "CURVE"`,
		string(greeting) + string(frame(command, "\x05ERROR\x03bad")): "refused the connection",
		string(greeting): "EOF",
	} {
		_, err := subscribe(receiving([]byte(sent)...), "")
		require.ErrorContains(t, err, want)
	}
}

// receiving is a connection on which a peer has sent this.
func receiving(sent ...byte) io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{bytes.NewReader(sent), io.Discard}
}

// A frame that is too long, alone or together with earlier ones, is refused before it is read. So are too many
// frames.
func TestMessagesAreBounded(t *testing.T) {
	hello := append(slices.Clone(greeting), frame(command, "\x05READY")...)
	long := func(size uint64) []byte { return binary.BigEndian.AppendUint64(append(frame(more, "x"), long), size) }
	const tooLong = "at most 16777216 bytes are read"
	for want, messages := range map[string][][]byte{
		tooLong:           {long(maxMessage), long(maxMessage + 1), long(1 << 63)},
		errEvents.Error(): {slices.Repeat(frame(more, ""), maxFrames+1)},
		"EOF":             {frame(more, ""), long(maxMessage - 1), nil},
	} {
		for _, message := range messages {
			s, err := subscribe(receiving(slices.Concat(hello, message)...), "")
			require.NoError(t, err)
			_, err = s.next()
			require.ErrorContains(t, err, want)
		}
	}
}

func FuzzSubscriber(f *testing.F) {
	f.Add(append(append(slices.Clone(greeting), frame(command, "\x05READY")...), message(1, []byte("abc"))...))
	f.Fuzz(func(_ *testing.T, sent []byte) {
		s, err := subscribe(receiving(sent...), "")
		for err == nil {
			_, err = s.next()
		}
	})
}

// Tokens are requested from the server with the most recent events. After a failure no job waits for tokens for
// some time.
func TestTokens(t *testing.T) {
	var calls atomic.Int32
	var status atomic.Int32
	tokens := run(1, 300)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, err := io.ReadAll(r.Body)
		if r.Method+r.URL.Path != "POST/tokenize" || string(body) != `{"messages":[]}` || err != nil || status.Load() != 0 {
			w.WriteHeader(int(status.Load()))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"count": len(tokens), "max_model_len": 4096, "tokens": tokens, "token_strs": nil})
	}))
	defer server.Close()
	var failed []error
	r := New(Config{
		Dial:   new(net.Dialer).DialContext,
		Failed: func(_ string, err error) { failed = append(failed, err) },
	})
	defer r.client.CloseIdleConnections()
	r.timeout = time.Minute
	body := []byte(`{"messages":[]}`)
	assert.Nil(t, r.Parts(body), "no events yet")
	r.use(server.Listener.Addr().String(), 64)
	parts := r.Parts(body)
	require.NotNil(t, parts)
	assert.False(t, parts.Set)
	for i, key := range keys(tokens) {
		assert.Equal(t, key, parts.Parts[i].Key)
		assert.Equal(t, 512.0, parts.Parts[i].Bytes)
	}
	assert.Len(t, parts.Parts, 2)
	tokens = run(1, 100)
	assert.Nil(t, r.Parts(body), "shorter than a part")
	status.Store(http.StatusBadRequest)
	assert.Nil(t, r.Parts(body))
	assert.Empty(t, failed, "the job's fault")
	status.Store(http.StatusNotFound)
	assert.Nil(t, r.Parts(body))
	assert.Nil(t, r.Parts(body), "not requested")
	r.resume = time.Time{}
	assert.Nil(t, r.Parts(body), "not logged again")
	assert.Equal(t, int32(5), calls.Load())
	assert.Equal(t, []error{fmt.Errorf("tokens of a prompt: %w", errors.New("status 404"))}, failed)
	r.resume, r.timeout = time.Time{}, 0
	r.Parts(nil)
	require.Len(t, failed, 2)
	require.ErrorIs(t, failed[1], context.DeadlineExceeded)
	assert.Len(t, r.split(run(1, 200_000), 64).Parts, maxParts)
}
