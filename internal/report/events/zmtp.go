package events

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxMessage is the maximum size of a message in bytes. A prompt of a million tokens that is read at once takes about 7 MB.
const maxMessage = 16 << 20

// maxFrames is the maximum number of frames of a message: topic, sequence number and batch.
const maxFrames = 3

// Flags of a frame.
const (
	more    = 1 << iota // another frame of the same message follows
	long                // the size has eight bytes instead of one
	command             // the frame is no part of a message
)

// greeting is what a peer of ZMTP 3.0 sends first: signature, version, mechanism, and zeros up to 64 bytes.
var greeting = append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL"), make([]byte, 64-16)...)

// subscriber reads from a ZeroMQ PUB socket.
type subscriber struct {
	in  *bufio.Reader
	buf []byte // of the last message
}

// subscribe makes the handshake and subscribes to the messages whose first frame starts with topic.
func subscribe(conn io.ReadWriter, topic string) (*subscriber, error) {
	if _, err := conn.Write(slices.Concat(greeting, frame(command, "\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"))); err != nil {
		return nil, err
	}
	s := &subscriber{in: bufio.NewReader(conn)}
	var peer [64]byte
	switch _, err := io.ReadFull(s.in, peer[:]); {
	case err != nil:
		return nil, fmt.Errorf("no ZeroMQ greeting: %w", err)
	case peer[0] != 0xff || peer[9] != 0x7f || peer[10] < 3:
		return nil, errors.New("not a ZeroMQ socket of version 4 or newer")
	case !bytes.Equal(peer[12:32], greeting[12:32]):
		return nil, fmt.Errorf("the ZeroMQ socket requires the security mechanism %q", bytes.TrimRight(peer[12:32], "\x00"))
	}
	flags, ready, err := s.frame(nil)
	switch {
	case err != nil:
		return nil, err
	case flags&command == 0 || !bytes.HasPrefix(ready, []byte("\x05READY")):
		return nil, fmt.Errorf("the ZeroMQ socket refused the connection: %.100q", ready)
	}
	_, err = conn.Write(frame(0, "\x01"+topic)) // libzmq refuses a connection where this arrives before it has sent its own READY
	return s, err
}

// frame encodes a frame; its content is short.
func frame(flags byte, content string) []byte {
	return append([]byte{flags, byte(len(content))}, content...)
}

// next returns the frames of the next message. They are valid until the next call.
func (s *subscriber) next() (frames [][]byte, err error) {
	s.buf = s.buf[:0]
	var ends []int
	for {
		flags, all, err := s.frame(s.buf)
		if err != nil {
			return nil, err
		}
		if flags&command != 0 { // of later versions of the protocol, such as PING
			continue
		}
		s.buf, ends = all, append(ends, len(all))
		if flags&more == 0 {
			break
		}
		if len(ends) == maxFrames {
			return nil, errEvents
		}
	}
	start := 0
	for _, end := range ends {
		frames, start = append(frames, s.buf[start:end]), end
	}
	return frames, nil
}

// frame appends the content of the next frame to the message so far.
func (s *subscriber) frame(message []byte) (flags byte, _ []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(s.in, head[:2]); err != nil {
		return 0, nil, err
	}
	flags, size := head[0], uint64(head[1])
	if flags&long != 0 {
		if _, err = io.ReadFull(s.in, head[2:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if flags > more|long|command || size > uint64(maxMessage-len(message)) {
		return 0, nil, fmt.Errorf("a ZeroMQ frame with the flags %#x and %d bytes: at most %d bytes are read", flags, size, maxMessage)
	}
	start := len(message)
	message = slices.Grow(message, int(size))[:start+int(size)]
	_, err = io.ReadFull(s.in, message[start:])
	return flags, message, err
}
