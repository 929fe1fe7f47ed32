package upstreamclient

import (
	"context"
	"strings"
	"testing"

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

// Ready tells whether the first Read brings something without a wait: net/http's reader waits for the rest of a
// chunk, of any size of 64 bits.
func TestWholeChunks(t *testing.T) {
	for there, whole := range map[string]bool{
		"2\r\nok\r\n0\r\n\r\n": true, "2;ext\r\nok": true, "1\r\no\r\n": true, "2\r\nok\r\n2": true, "0\r\n\r\n": true, "0\r\nX: 1\r\n\r\n": true,
		"2\r\no": false, "2\r\nok\r\n2\r\n": false, "2\r\nok\r\n2\r\no": false, "2\r\nok\r\n0\r\n": false, "2\r\n": false, "2": false, "": false,
		"0\r\nX: 1": false, "0\r\n": false, "8000000000000000\r\n": false, "ffffffffffffffff\r\n": false, "x\r\n": true, // an error comes at once
	} {
		assert.Equal(t, whole, wholeChunks([]byte(there)), "%q", there)
	}
}
