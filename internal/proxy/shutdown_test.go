package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/test/peer"
)

func TestShutdownLetsJobsFinish(t *testing.T) {
	finish := make(chan struct{})
	up := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		<-finish
		_, _ = io.WriteString(w, "done")
	})
	c := startSidecar(t, setup{upstreams: []string{up}})
	var bodies []io.Reader
	for range 15 {
		for _, open := range submitters {
			bodies = append(bodies, open(t, c, "/"))
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.server.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", c.address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, patience, time.Millisecond, "no more jobs are accepted")
	assert.Empty(t, stopped, "it waits for the jobs at hand")
	close(finish)
	for _, body := range bodies {
		text, err := io.ReadAll(body)
		assert.Equal(t, "begun done <nil>", fmt.Sprint(string(text), " ", err))
	}
	require.NoError(t, <-stopped)
	for _, r := range c.seen(len(bodies)) {
		assert.Equal(t, intake.Answered, r.Outcome)
	}
}

// Jobs that outlast the grace time are cut, which no submitter can take for a
// clean end.
func TestShutdownCutsWhatLasts(t *testing.T) {
	up := peer.Listen(t, func(p *peer.Peer) {
		switch p.Request().URL.Path {
		case "/chunked":
			p.Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")
		case "/length":
			p.Say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
		}
		p.Gone()
	})
	c := startSidecar(t, setup{upstreams: []string{up}})
	bodies := map[string]io.Reader{}
	for name, open := range submitters {
		for _, path := range []string{"/chunked", "/length"} {
			bodies[name+path] = open(t, c, path)
		}
	}
	silent := make(chan reply)
	go func() {
		res, _ := c.post("{}")
		silent <- res
	}()
	jobs := len(bodies) + 1
	require.Eventually(t, func() bool { n, _ := c.balancer.Counts(); return n == jobs }, patience, time.Millisecond)

	grace, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := c.server.Shutdown(grace)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for name, body := range bodies {
		got, err := io.ReadAll(body)
		assert.Error(t, err, name)
		assert.True(t, strings.HasPrefix("some", string(got)), "%s: %q", name, got) // a reset may destroy what was sent
	}
	res := <-silent
	assert.Equal(t, []any{502, "shutting-down"}, []any{res.StatusCode, res.Header.Get("Pilotfish-Reason")}, "not 503: a retry could run the job twice")
	for _, r := range c.seen(jobs) {
		require.Contains(t, r.Err, record.ErrShutdown.Error())
	}
}

// From the first instant of a drain, each response ends its connection, also that of a job that arrived before, and a
// problem of pilotfish's own.
func TestResponsesOfADrainEndTheirConnections(t *testing.T) {
	var draining atomic.Bool
	up := peer.Listen(t, func(p *peer.Peer) {
		for p.Request() != nil {
			draining.Store(true)
			p.Say(ok)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up}, Config: proxy.Config{Draining: draining.Load}})
	for request, status := range map[string]int{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                          200,
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n":       200,
		"POST / HTTP/1.0\r\nConnection: keep-alive\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}":        200,
		"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n":                                                          403,
		"GET / HTTP/1.1\r\nHost: elsewhere\r\nTE: trailers\r\nConnection: TE\r\nX-Y: an unusual one\r\n\r\n": 403,
	} {
		draining.Store(status != 200)
		s := c.connect()
		s.say("%s", request)
		head, err := http.ReadResponse(s.in, nil)
		require.NoError(t, err)
		_ = head.Body.Close()
		assert.Equal(t, status, head.StatusCode)
		assert.True(t, head.Close, "%q", request)
	}
}
