package health

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A shortage on this machine is no evidence against an upstream, whether it fails a dial or the look-up before it.
func TestShortages(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.ENOBUFS: true, syscall.ENOMEM: true, syscall.EADDRNOTAVAIL: true,
		&net.DNSError{Err: "dial udp 10.0.0.2:53: socket: too many open files", Name: "up", IsTemporary: true}: true,
		&net.DNSError{Err: "server misbehaving", Name: "up", IsTemporary: true}:                                false,
		syscall.EAGAIN: false, syscall.ECONNREFUSED: false, syscall.EHOSTUNREACH: false, ErrNoResponse: false,
	} {
		assert.Equal(t, want, new(Lookups).IsShortage(start, fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: err})), "%v", err)
	}
	assert.False(t, new(Lookups).IsShortage(start, nil))
}

// A failed look-up is the resolver's fault if one of another name has failed within a minute, and none succeeded since.
func TestLookups(t *testing.T) {
	const resolved = ""
	for name, c := range map[string]struct {
		lookups []string // names whose look-up fails, 30 s apart
		want    []bool
	}{
		"one name":                      {[]string{"a", "a", "a"}, []bool{false, false, false}},
		"two names":                     {[]string{"a", "b", "a", "a", "a"}, []bool{false, true, true, true, false}},
		"one resolves in between":       {[]string{"a", resolved, "b", "b"}, []bool{false, false, false, false}},
		"a name that does not exist":    {[]string{"a", "none", "b"}, []bool{false, false, true}},
		"the other failed too long ago": {[]string{"a", "a", "none", "none", "none", "b"}, []bool{false, false, false, false, false, false}},
	} {
		var l Lookups
		for i, lookup := range c.lookups {
			if lookup == resolved {
				l.Dialed(start, nil)
				continue
			}
			err := &net.DNSError{Err: "i/o timeout", Name: lookup, IsTimeout: true}
			if lookup == "none" {
				err = &net.DNSError{Err: "no such host", Name: lookup, IsNotFound: true}
			}
			now := start.Add(time.Duration(i) * 30 * time.Second)
			l.Dialed(now, err)
			assert.Equal(t, c.want[i], l.IsShortage(now, err), "%s, %d", name, i)
		}
	}
}
