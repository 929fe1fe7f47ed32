// Package events reads the events of vLLM's KV caches. They show what every server has cached of a prompt, whichever sidecar sent
// it there, and what was evicted.
//
//	vLLM ── ZeroMQ PUB socket ──> subscriber ──> batch ──> cache ──> prompts.Change, for the pool
//	a job's body ── POST /tokenize ──> tokenizer ──> parts of the prompt, with the same keys
//
// Events name blocks of tokens, and jobs have text. Only the server has the model's chat template and tokenizer, so it
// tokenizes each prompt. Keys are hashes of tokens: vLLM's own hashes differ between versions and processes.
//
//	          a stored block whose prefix is known
//	┌───────┐ ───────────────────────────────────> ┌───────┐
//	│unknown│                                      │ known │
//	└───────┘ <─────────────────────────────────── └───────┘
//	          events are missing: a gap in the sequence numbers, or a restart
//
// What holds:
//
//   - A known block was stored by an event, and no later event removed it.
//   - The prefix of a block is known if its events were read, or if a job of this sidecar has the same tokens. So a sidecar that
//     starts later than the server learns of blocks when it sends prompts that share them.
//   - While a block is unknown, the pool assumes that a server has what was sent there, as it does without events.
//   - Messages, blocks, tokens and pauses are bounded.
//
// The subscriber is our own, 100 lines of ZMTP 3.0 without security: the Go library without C, go-zeromq/zmq4, has had no release
// since May 2024. MessagePack is read with tinylib/msgp, which is maintained, and decodes in place without reflection.
package events

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"time"

	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section reports.events.
type Settings struct {
	// Port is the port where each upstream publishes the events of its KV cache, as vLLM does with --kv-events-config. 0 reads
	// no events.
	Port int `yaml:"port"`
	// Topic is the topic of the events, or its prefix.
	Topic string `yaml:"topic"`
}

const (
	// maxTopic bounds the topic, in bytes.
	maxTopic = 254
	// A connection that broke is made again after a pause, which doubles up to maxPause until there are events.
	minPause, maxPause = 100 * time.Millisecond, 10 * time.Second
	// handshakeTimeout is the maximum time to connect, and again for the handshake.
	handshakeTimeout = 5 * time.Second
)

// Check adds what is wrong with the settings to f.
func (s Settings) Check(f *settings.Faults) {
	f.Within("port", s.Port, 0, 65535)
	if len(s.Topic) > maxTopic {
		f.Add("topic", "it is longer than %d bytes", maxTopic)
	}
}

// Config is the configuration of a Reader. All fields except Topic are required. The hooks are called from several goroutines, but
// in order for one upstream.
type Config struct {
	Settings
	// Changed is called with the changes of an upstream's cache.
	Changed func(address string, changes []prompts.Change)
	// Counted is called for each event; used is false if the event was ignored.
	Counted func(address string, used bool)
	// Connected is called for each new connection to an upstream's events.
	Connected func(address string)
	// Failed is called with each error of a request for tokens, and with an error of a connection unless it repeats.
	Failed func(address string, err error)
	// Dial connects to an upstream, for events and tokens; nil is net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Reader reads the events of several upstreams, and the tokens of prompts.
type Reader struct {
	cfg Config
	*tokenizer
}

// New returns a Reader.
func New(c Config) *Reader {
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	r := &Reader{cfg: c}
	r.tokenizer = newTokenizer(&r.cfg)
	return r
}

// Follow reads the events of an upstream until ctx is done.
func (r *Reader) Follow(ctx context.Context, address string) {
	host, _, err := settings.SplitAddress(address)
	if err != nil { // a socket
		return
	}
	c := &cache{
		blocks: map[uint64]chain{}, before: r.before,
		counted: func(used bool) { r.cfg.Counted(address, used) },
	}
	publisher := net.JoinHostPort(host, strconv.Itoa(r.cfg.Port))
	for pause, reason := minPause, ""; ; pause = min(2*pause, maxPause) {
		used, err := r.read(ctx, publisher, address, c)
		if ctx.Err() != nil {
			return
		}
		if used {
			pause, reason = minPause, ""
		}
		if text := err.Error(); text != reason {
			reason = text
			r.cfg.Failed(address, fmt.Errorf("events of the cache: %w", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// read reads events from one connection until it breaks. used is true if there was a batch of events: a connection without one can
// be to another service, and break at once each time.
func (r *Reader) read(ctx context.Context, publisher, address string, c *cache) (used bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := r.cfg.Dial(dialing, "tcp", publisher)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout)) // on error the connection is broken, and so is the handshake
	s, err := subscribe(conn, r.cfg.Topic)
	if err != nil {
		return false, err
	}
	_ = conn.SetDeadline(time.Time{}) // from now on TCP's keep-alive notices a dead peer
	r.cfg.Connected(address)
	for {
		frames, err := s.next()
		if err != nil {
			return used, err
		}
		if len(frames) != maxFrames || len(frames[1]) != 8 {
			return used, errEvents
		}
		events, err := batch(frames[2])
		if err != nil {
			return used, err
		}
		used = true
		if changes := c.apply(binary.BigEndian.Uint64(frames[1]), events); len(changes) > 0 {
			r.cfg.Changed(address, changes)
		}
		if c.size > 0 {
			r.use(address, c.size)
		}
	}
}
