package upstreamclient

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHeadsAreBounded(t *testing.T) {
	line := "X: " + strings.Repeat("x", 1000) + "\r\n"
	for name, answer := range map[string]string{
		"a head":              "HTTP/1.1 200 OK\r\n" + strings.Repeat(line, 1000) + "\r\n",
		"one line":            "HTTP/1.1 200 " + strings.Repeat("x", 1<<20),
		"an interim head":     "HTTP/1.1 103 Hints\r\n" + strings.Repeat(line, 1000) + "\r\n" + ok,
		"interims, no end":    strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 1000) + ok,
		"a head without end":  "HTTP/1.1 200 OK\r\n",
		"an answer below 100": "HTTP/1.1 099 No\r\n\r\n",
		"short lines":         "HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\n", 1000) + ok[17:],
	} {
		t.Run(name, func(t *testing.T) {
			up := listen(t, func(p *peer) {
				p.request()
				p.say("%s", answer)
			})
			c := newClient(t, Config{MaxHead: 64 << 10})
			_, p, err := c.Do(context.Background(), job(up, "{}"))
			require.Error(t, err)
			assert.True(t, p.Answered)
			assert.Zero(t, c.Idle()[up])
		})
	}
	up := listen(t, func(p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\n%s\r\n", strings.Repeat(line, 60)+"Content-Length: 1048576\r\n")
		p.say("%s", strings.Repeat("x", 1<<20))
	})
	_, text, _ := do(t, newClient(t, Config{MaxHead: 64 << 10}), job(up, "{}"))
	assert.Len(t, text, 1<<20, "the bound is on the head alone")
}

// Ready tells whether the first Read brings something without a wait.
func TestReady(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	for _, tc := range []struct {
		now, later string
		ready      bool
	}{
		{head + "Content-Length: 2\r\n\r\nok", "", true},
		{head + "Content-Length: 2\r\n\r\no", "k", true},
		{head + "Content-Length: 0\r\n\r\n", "", true},
		{head + "Content-Length: 2\r\n\r\n", "ok", false},
		{head + "\r\nok", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\no", "k\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2;ext\r\nok", "\r\n0\r\n\r\n", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n", "0\r\n\r\n", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2", "\r\nok\r\n0\r\n\r\n", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\r\n", "ok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\r\no", "k\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\n", "ok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2", "\r\nok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n", "2\r\nok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n\r\n", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 1", "\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\n", "\r\n", false},
	} {
		t.Run(tc.now, func(t *testing.T) {
			looked := make(chan struct{})
			up := listen(t, func(p *peer) {
				p.request()
				p.say("%s", tc.now)
				<-looked
				p.say("%s", tc.later)
			})
			c := newClient(t, Config{})
			res, _, err := c.Do(context.Background(), job(up, "{}"))
			require.NoError(t, err)
			assert.Equal(t, tc.ready, res.Ready())
			if tc.ready { // no Read waits for what is said later
				_, err = res.Read(make([]byte, 100), time.Now().Add(patience))
				assert.True(t, err == nil || errors.Is(err, io.EOF), err)
			}
			close(looked)
			_, err = res.all()
			require.NoError(t, err)
		})
	}
}

// The reader takes any size of 64 bits, and waits for so many bytes.
func TestAHugeChunkIsNotReady(t *testing.T) {
	for _, size := range []string{"8000000000000000", "ffffffffffffffff"} {
		up := listen(t, func(p *peer) {
			p.request()
			p.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n", size)
			p.gone()
		})
		res, _, err := newClient(t, Config{}).Do(context.Background(), job(up, "{}"))
		require.NoError(t, err)
		require.Greater(t, res.conn.In.Buffered(), len(size))
		assert.False(t, res.Ready(), size)
		res.Close()
	}
}
