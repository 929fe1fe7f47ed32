//go:build linux

package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"example.org/pilotfish/internal/cli"
)

// turn goes round the upstreams.
type turn struct {
	upstreams []string
	next      atomic.Uint64
}

func (t *turn) upstream() string {
	return t.upstreams[(t.next.Add(1)-1)%uint64(len(t.upstreams))]
}

// reverseProxyCommand is what the standard library offers: it does not read jobs.
type reverseProxyCommand struct {
	Listen   string   `required:"" help:"Where it listens."`
	Upstream []string `required:"" help:"An upstream; repeat for more."`
}

func (c *reverseProxyCommand) Run(cli.Console) error {
	t := turn{upstreams: c.Upstream}
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: t.upstream()})
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	return http.ListenAndServe(c.Listen, p) //nolint:gosec // only bench talks to it
}

// relayCommand passes bytes on, a connection to one upstream. No proxy can cost less.
type relayCommand struct {
	Listen   string   `required:"" help:"Where it listens."`
	Upstream []string `required:"" help:"An upstream; repeat for more."`
}

func (c *relayCommand) Run(cli.Console) error {
	t := turn{upstreams: c.Upstream}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	for {
		in, err := l.Accept()
		if err != nil {
			return err
		}
		go relay(in, t.upstream())
	}
}

// relay passes bytes both ways until either side ends.
func relay(in net.Conn, upstream string) {
	defer in.Close()
	out, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer out.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(out, in) // that a side has ended is no failure
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
	<-ended
}
