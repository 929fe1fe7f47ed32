package upstreamclient

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func FuzzRequestLines(f *testing.F) {
	for _, target := range []string{"/", "/a b", "/a\r\nX: y", "*", "/\x7f", "/\xff", "http://x/", "/a HTTP/1.1", "/\u0085\xe8"} {
		f.Add("GET", target, "localhost", "X", "1")
	}
	f.Fuzz(func(t *testing.T, method, target, host, name, value string) {
		r := &Request{Address: "up:1", Method: method, Target: target, Host: host, Header: http.Header{name: {value}}}
		head, err := r.appendHead(nil)
		if err != nil {
			return
		}
		lines := bytes.Split(head, []byte("\r\n"))
		require.LessOrEqual(t, len(lines), 6)
		assert.Equal(t, 2, bytes.Count(lines[0], []byte(" ")), "three parts")
		assert.Equal(t, target, string(bytes.Split(lines[0], []byte(" "))[1]))
		assert.Equal(t, len(lines)-1, bytes.Count(head, []byte("\n")))
		if u, err := url.ParseRequestURI(target); err == nil && u.Host == "" {
			_, err := http.ReadRequest(newReader(bytes.NewReader(head)))
			assert.NoError(t, err, "%q", head)
		}
	})
}

func TestTheHostOfARequestWithoutOne(t *testing.T) {
	for address, want := range map[string]string{
		"up:1": "up:1", "10.0.0.1:80": "10.0.0.1:80", "[::1]:80": "[::1]:80",
		"unix:/run/up.sock": "localhost", "[fe80::1%eth0]:80": "[fe80::1]:80", "[::1%lo]:80": "[::1]:80",
	} {
		r := &Request{Address: address, Method: http.MethodGet, Target: "/"}
		head, err := r.appendHead(nil)
		require.NoError(t, err)
		assert.Equal(t, "GET / HTTP/1.1\r\nHost: "+want+"\r\n\r\n", string(head))
	}
}

type failing struct {
	io.Reader
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}
