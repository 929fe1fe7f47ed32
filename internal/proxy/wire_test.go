package proxy_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/peer"
	"example.org/pilotfish/test/wirecases"
)

var update = flag.Bool("update", false, "write the results of the cases to test/wirecases")

// Requests of other projects' parser tests: each is refused, or forwarded to the upstream completely and unchanged.
func TestForeignRequests(t *testing.T) {
	seen := newListener(t)
	c := startSidecar(t, setup{upstreams: []string{seen.address}})
	settle(t, "requests", wirecases.Requests(), func(w wirecases.Case) string { return seen.through(t, c.address, w) })
}

// Responses of other projects' parser tests: each is forwarded unchanged, refused or truncated. HTTP/2 gives the same result.
func TestForeignResponses(t *testing.T) {
	up, answer := answeringOnce(t)
	c := startSidecar(t, setup{upstreams: []string{up}})
	over2 := h2c(t)
	over2.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	settle(t, "responses", wirecases.Responses(), func(w wirecases.Case) string {
		answer(w.Sent)
		said, _ := submitted(t, c.address)
		res, err := over2.Post(c.url("/"), "", strings.NewReader("{}"))
		require.NoError(t, err)
		switch again, _ := passed(res); {
		case res.StatusCode == 204 || res.StatusCode == 304: // net/http's client would wait for a body of the declared length
		case strings.HasSuffix(again, "cut"):
			assert.True(t, strings.HasSuffix(said, "cut"), w.Text)
		default:
			assert.True(t, strings.HasSuffix(said, again), "%s: %s and %s", w.Text, said, again)
		}
		return said
	})
}

// settle compares the result of each case with the file, or writes it there.
func settle(t *testing.T, file string, cases []wirecases.Case, made func(wirecases.Case) string) {
	path := "../../test/wirecases/" + file + ".txt"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var lines []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	for _, c := range cases {
		got := made(c)
		lines = append(lines, c.Text+" => "+got)
		if !*update {
			assert.Equal(t, c.Want, got, c.Text)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
}

// listener is an upstream that describes the requests that it receives.
type listener struct {
	address  string
	mu       sync.Mutex
	got      []string
	messages []string // the same without headers
}

func newListener(t testing.TB) *listener {
	l := &listener{}
	l.address = peer.Listen(t, func(p *peer.Peer) {
		for r := p.Request(); r != nil; r = p.Request() {
			l.mu.Lock()
			l.messages = append(l.messages, fmt.Sprintf("%s %s %q", r.Method, r.RequestURI, r.Text))
			l.got = append(l.got, fmt.Sprintf("%s %s%s %q%s", r.Method, r.RequestURI, fields(" ", r.Header), r.Text, fields(" +", r.Trailer)))
			l.mu.Unlock()
			p.Say(ok)
		}
	})
	return l
}

// take returns the requests so far without their headers, and forgets them.
func (l *listener) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	messages := l.messages
	l.got, l.messages = nil, nil
	return messages
}

// through sends requests to an address, and says what came back and what the upstream got. One
// more ends the connection, if it was not ended before.
func (l *listener) through(t testing.TB, address string, w wirecases.Case) string {
	l.take()
	s := connectTo(t, address)
	if w.Ends {
		s.say("%s", w.Sent)
		_ = s.Conn.(patient).Conn.(*net.TCPConn).CloseWrite() // it may be closed already
	} else {
		s.say("%sGET /end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", w.Sent)
	}
	statuses := ""
	for status := s.status(); status != 0; status = s.status() {
		statuses += fmt.Sprint(status, " ")
	}
	_ = s.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(statuses + strings.Join(l.got, ", "))
}

// fields describes headers or trailers, except headers that every message has.
func fields(before string, h http.Header) (text string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name != "Content-Length" && name != "X-Request-Id" {
			text += fmt.Sprintf("%s%s=%q", before, name, h[name])
		}
	}
	return text
}

// answeringOnce is an upstream that sends the response set last for each job, and closes the connection.
func answeringOnce(t testing.TB) (address string, answer func(string)) {
	var mu sync.Mutex
	var text string
	u := peer.Listen(t, func(p *peer.Peer) {
		if p.Request() != nil {
			mu.Lock()
			defer mu.Unlock()
			p.Say("%s", text)
		}
	})
	return u, func(next string) {
		mu.Lock()
		defer mu.Unlock()
		text = next
	}
}

// submitted submits a job and describes the response, with and without headers.
func submitted(t testing.TB, address string) (said, message string) {
	s := connectTo(t, address)
	defer s.Close()
	s.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
	for {
		res, err := http.ReadResponse(s.in, nil)
		if err != nil {
			return said + "cut", "cut"
		}
		one, message := passed(res)
		if said += one; res.StatusCode >= 200 {
			return said, message
		}
		said += ", "
	}
}

// passed describes a response, with and without headers.
func passed(res *http.Response) (said, message string) {
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	said, message = fmt.Sprintf("%d%s", res.StatusCode, fields(" ", res.Header)), fmt.Sprintf("%d %q", res.StatusCode, body)
	switch {
	case res.StatusCode < 200:
		return said, message
	case res.Header.Get("Pilotfish-Reason") != "":
		return fmt.Sprint(res.StatusCode), message
	case err != nil:
		return said + fmt.Sprintf(" %q cut", body), message + " cut"
	}
	return said + fmt.Sprintf(" %q%s", body, fields(" +", res.Trailer)), message
}
