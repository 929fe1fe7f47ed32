package files

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
)

// records is the connection below crypto/tls. It tracks the boundaries of the received TLS
// records, because crypto/tls does not report whether it waits for the rest of one.
type records struct {
	net.Conn
	head [5]byte // header of a record: type, version and length
	got  int     // number of bytes of the header received so far
	left int     // missing bytes of the record
	eof  bool    // the connection has ended
}

func (r *records) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.eof = r.eof || errors.Is(err, io.EOF)
	for came := p[:n]; len(came) > 0; {
		if r.got < len(r.head) {
			k := copy(r.head[r.got:], came)
			r.got, came = r.got+k, came[k:]
			r.left = int(binary.BigEndian.Uint16(r.head[3:]))
		}
		k := min(r.left, len(came))
		if r.got == len(r.head) {
			r.left, came = r.left-k, came[k:]
			if r.left == 0 {
				r.got = 0
			}
		}
	}
	return n, err
}

// InRecord reports whether the last record is incomplete.
func (r *records) InRecord() bool { return r.got > 0 }

// Truncated reports, after io.EOF from TLS, whether the peer ended the connection without close_notify. crypto/tls
// accepts that, and reads nothing after a close_notify.
func (r *records) Truncated() bool { return r.eof }

// SyscallConn returns the raw connection of the underlying connection.
func (r *records) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := r.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
