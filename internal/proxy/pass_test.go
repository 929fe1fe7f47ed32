package proxy_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// The memory of a body is free for other jobs as soon as its response begins.
func TestABodyIsGivenBackWhenItsResponseBegins(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		c := startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", func(p *peer) {
			p.request()
			time.Sleep(time.Second)
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
			time.Sleep(time.Second)
			p.say("half")
		})}})
		submitter := m.client(t)
		go func() {
			if res, err := submitter.Post("http://127.0.0.1:8080/v1/jobs", "application/json", reader("{}")); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
		synctest.Wait()
		assert.Positive(t, c.budget.Used())
		time.Sleep(1500 * time.Millisecond)
		assert.Zero(t, c.budget.Used())
		time.Sleep(time.Second)
		c.seen(1)
	})
}
