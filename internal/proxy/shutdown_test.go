package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
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
	const streams = 50
	finish := make(chan struct{})
	up := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		<-finish
		_, _ = io.WriteString(w, "done")
	})
	c := startSidecar(t, setup{upstreams: []string{up}})
	var all sync.WaitGroup
	for i := range streams {
		submit := client(t)
		if i%2 == 0 {
			submit = h2c(t)
		}
		res, err := submit.Get(c.url("/"))
		require.NoError(t, err)
		all.Go(func() {
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			assert.Equal(t, "begun done <nil>", fmt.Sprint(string(body), " ", err))
		})
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
	all.Wait()
	require.NoError(t, <-stopped)
	for _, r := range c.seen(streams) {
		assert.Equal(t, intake.Answered, r.Outcome)
	}
}

// Jobs that outlast the grace time are cut, which no submitter can take for a
// clean end.
func TestShutdownCutsWhatLasts(t *testing.T) {
	up := peer.Listen(t, func(p *peer.Peer) {
		r := p.Request()
		switch r.URL.Path {
		case "/chunked":
			p.Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")
		case "/length":
			p.Say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
		}
		p.Gone()
	})
	c := startSidecar(t, setup{upstreams: []string{up}})
	ends := make(chan string, 5)
	var begun sync.WaitGroup
	begun.Add(4) // all but the silent one
	submitting := func(name string, submit *http.Client, path string) {
		res, err := submit.Get(c.url(path))
		if !assert.NoError(t, err, name) {
			return
		}
		defer res.Body.Close()
		if reason := res.Header.Get("Pilotfish-Reason"); reason != "" {
			ends <- fmt.Sprintf("%s: %d %s", name, res.StatusCode, reason)
			return
		}
		begun.Done()
		body, err := io.ReadAll(res.Body)
		ends <- fmt.Sprintf("%s: %s, clean %t", name, body, err == nil)
	}
	go submitting("chunked", client(t), "/chunked")
	go submitting("length", client(t), "/length")
	go submitting("h2c", h2c(t), "/chunked")
	go submitting("silent", client(t), "/silent")
	old := c.connect()
	old.say("GET /chunked HTTP/1.0\r\n\r\n")
	old.response()
	begun.Done()
	go func() {
		body, err := old.rest()
		ends <- fmt.Sprintf("http/1.0: %s, clean %t", body, err == nil)
	}()
	begun.Wait()
	require.Eventually(t, func() bool { n, _ := c.balancer.Counts(); return n == 5 }, patience, time.Millisecond)

	grace, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := c.server.Shutdown(grace)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var got []string
	for range 5 {
		got = append(got, strings.Replace(<-ends, ": ,", ": some,", 1)) // a reset may destroy what was sent
	}
	assert.ElementsMatch(t, []string{
		"chunked: some, clean false", "length: some, clean false", "h2c: some, clean false", "http/1.0: some, clean false",
		"silent: 502 shutting-down", // not 503: the job may have started, so a retry could run it twice
	}, got)
	for _, r := range c.seen(5) {
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
