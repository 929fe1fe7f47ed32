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
			assert.Zero(t, pooled(c, up))
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
