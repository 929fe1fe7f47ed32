package upstreamclient

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// looked is a connection on which something happens as a sweep looks at it.
type looked struct {
	net.Conn
	then   func()
	closed bool
}

func (l *looked) SetDeadline(time.Time) error {
	l.then()
	return nil
}

func (l *looked) Close() error {
	l.closed = true
	return l.Conn.Close()
}

// While a sweep looks at connections, others are given back. There are no more than may be idle
// afterwards, the last ones used, and none is lost.
func TestWhatIsGivenBackDuringASweep(t *testing.T) {
	for name, tc := range map[string]struct {
		given, idle int  // connections given back, and connections that may be idle
		closes      bool // the client is closed meanwhile
		left        []int
	}{
		"there is room":          {given: 1, idle: 4, left: []int{0, 1, 2}},
		"one too many":           {given: 1, idle: 2, left: []int{1, 2}},
		"many too many":          {given: 3, idle: 2, left: []int{2, 3}},
		"the client was closed":  {closes: true, idle: 2},
		"the client, and others": {given: 1, closes: true, idle: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, Config{Idle: tc.idle})
			var all []*conn
			give := func(then func()) {
				near, _ := net.Pipe()
				all = append(all, newConn(&looked{Conn: near, then: then}))
				c.keep("up:1", all[len(all)-1])
			}
			swept := false
			give(func() {
				if swept {
					return
				}
				swept = true
				for range tc.given {
					give(func() {})
				}
				if tc.closes {
					c.Close()
				}
			})
			give(func() {})
			c.sweep()
			var left []int
			for _, cn := range c.at("up:1").idle {
				left = append(left, slices.Index(all, cn))
			}
			assert.Equal(t, tc.left, left)
			for i, cn := range all {
				assert.Equal(t, !slices.Contains(left, i), cn.Conn.Conn.(*looked).closed, i)
			}
		})
	}
}
