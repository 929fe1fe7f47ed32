package files

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
)

// records is a connection that carries TLS. It follows the records that are received:
// crypto/tls does not say whether it holds a part of one.
type records struct {
	net.Conn
	head [5]byte // of a record: type, version, and the length of what follows
	got  int     // bytes of the head
	left int     // bytes of the record that have not come
	eof  bool    // the connection has ended
}

// Read reads from the connection.
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

// InRecord reports whether the last record that was read has not come whole.
func (r *records) InRecord() bool { return r.got > 0 }

// Truncated reports, after io.EOF from TLS, whether the other side has not announced the end (close_notify). crypto/tls
// reads no more after the announcement, and accepts an end without it.
func (r *records) Truncated() bool { return r.eof }

// SyscallConn is that of the connection below.
func (r *records) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := r.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
