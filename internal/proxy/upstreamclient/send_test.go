package upstreamclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// received is what an upstream got.
type received struct {
	*http.Request
	body string
}

func recording(t testing.TB) (address string, got chan received) {
	got = make(chan received, 100)
	return listen(t, func(p *peer) {
		for r, body := p.request(); r != nil; r, body = p.request() {
			got <- received{r, body}
			p.say(ok)
		}
	}), got
}

func TestRequestsArriveAsTheyAre(t *testing.T) {
	up, got := recording(t)
	c := newClient(t, Config{})
	long := strings.Repeat("0123456789abcdef", 64<<10)
	for name, tc := range map[string]struct {
		change func(*Request)
		body   string
		length int64
		header http.Header
	}{
		"small":                          {func(r *Request) { r.Whole = []byte("{}") }, "{}", 2, http.Header{"Content-Length": {"2"}}},
		"none, POST":                     {func(r *Request) {}, "", 0, http.Header{"Content-Length": {"0"}}},
		"none, GET":                      {func(r *Request) { r.Method = "GET" }, "", 0, http.Header{}},
		"as much as one goroutine sends": {func(r *Request) { r.Whole = []byte(long[:inline]) }, long[:inline], inline, nil},
		"a byte more":                    {func(r *Request) { r.Whole = []byte(long[:inline+1]) }, long[:inline+1], inline + 1, nil},
		"long":                           {func(r *Request) { r.Whole = []byte(long) }, long, 1 << 20, nil},
		"read, with a length": {func(r *Request) {
			r.Body, r.Length = io.NopCloser(strings.NewReader(long)), 1<<20
		}, long, 1 << 20, nil},
		"read, without": {func(r *Request) { r.Body, r.Length = io.NopCloser(strings.NewReader(long)), -1 }, long, -1, nil},
		"with trailers": {func(r *Request) {
			r.Whole, r.Trailer = []byte("{}"), http.Header{"X-Sum": {"1"}}
		}, "{}", -1, nil},
		"with trailers, empty": {func(r *Request) { r.Trailer = http.Header{"X-Sum": {"1"}} }, "", -1, nil},
		"headers": {func(r *Request) {
			r.Header = http.Header{"X-Two": {"1", "2"}, "x-low": {"3"}, "Host": {"evil"}, "Content-Length": {"9"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"X"}}
		}, "", 0, http.Header{"X-Two": {"1", "2"}, "X-Low": {"3"}, "Content-Length": {"0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := job(up, "")
			r.Target = "/a%2Fb//../c;x?y=%zz&a;b"
			tc.change(r)
			for range 2 { // the second on a pooled connection
				if r.Body != nil {
					r.Body = io.NopCloser(strings.NewReader(long))
				}
				_, text, _ := do(t, c, r)
				assert.Equal(t, "ok", text)
				request := <-got
				assert.Equal(t, r.Method, request.Method)
				assert.Equal(t, "/a%2Fb//../c;x?y=%zz&a;b", request.RequestURI)
				assert.Equal(t, "localhost", request.Host)
				assert.Equal(t, tc.length, request.ContentLength)
				assert.True(t, tc.body == request.body, "%d bytes came, not %d", len(request.body), len(tc.body))
				if tc.header != nil {
					assert.Equal(t, tc.header, request.Header)
				}
				if r.Trailer != nil {
					assert.Equal(t, r.Trailer, request.Trailer)
				}
			}
			// Where the sender of a read body has not come to its end by then, the
			// connection is closed: on a busy machine that may be so a few times.
			require.Eventually(t, func() bool {
				if r.Body != nil && c.Idle()[up] == 0 {
					r.Body = io.NopCloser(strings.NewReader(long))
					do(t, c, r)
					<-got
				}
				return c.Idle()[up] > 0
			}, patience, time.Millisecond, "the connection is pooled")
		})
	}
}

// What cannot be written unambiguously is refused before a byte is sent.
func TestRequestsThatAreRefused(t *testing.T) {
	up, got := recording(t)
	c := newClient(t, Config{})
	for name, change := range map[string]func(*Request){
		"a space in the target":     func(r *Request) { r.Target = "/a HTTP/1.1\r\nX: y" },
		"a line end in the target":  func(r *Request) { r.Target = "/a\nX" },
		"no target":                 func(r *Request) { r.Target = "" },
		"a space in the method":     func(r *Request) { r.Method = "GET /" },
		"no method":                 func(r *Request) { r.Method = "" },
		"a line end in the host":    func(r *Request) { r.Host = "a\r\nX: y" },
		"a line end in a value":     func(r *Request) { r.Header = http.Header{"X": {"1\r\nY: 2"}} },
		"a NUL in a value":          func(r *Request) { r.Header = http.Header{"X": {"\x00"}} },
		"a colon in a header":       func(r *Request) { r.Header = http.Header{"X: 1\r\nY": {"2"}} },
		"an empty header":           func(r *Request) { r.Header = http.Header{"": {"2"}} },
		"a trailer that frames":     func(r *Request) { r.Trailer = http.Header{"Content-Length": {"2"}} },
		"a trailer of a wrong name": func(r *Request) { r.Trailer = http.Header{"X Y": {"2"}} },
	} {
		t.Run(name, func(t *testing.T) {
			r := job(up, "{}")
			change(r)
			_, p, err := c.Do(context.Background(), r)
			require.ErrorIs(t, err, ErrRequest)
			assert.False(t, p.Begun)
			assert.Empty(t, got)
		})
	}
}

func FuzzRequestLines(f *testing.F) {
	for _, target := range []string{"/", "/a b", "/a\r\nX: y", "*", "/\x7f", "/\xff", "http://x/", "/a HTTP/1.1"} {
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
		assert.Equal(t, target, strings.Fields(string(lines[0]))[1])
		assert.Equal(t, len(lines)-1, bytes.Count(head, []byte("\n")))
		if u, err := url.ParseRequestURI(target); err == nil && u.Host == "" {
			_, err := http.ReadRequest(newReader(bytes.NewReader(head)))
			assert.NoError(t, err, "%q", head)
		}
	})
}

// An upstream that answers without reading the body, and closes, is heard.
func TestEarlyAnswersAreHeard(t *testing.T) {
	early := listen(t, func(p *peer) {
		_, _ = p.in.ReadString('\n')
		p.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
	})
	stalling := listen(t, func(p *peer) {
		_, _ = p.in.ReadString('\n')
		p.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
		p.gone()
	})
	body := strings.Repeat("x", 8<<20)
	for range 8 {
		for _, up := range []string{early, stalling} {
			c := newClient(t, Config{})
			status, text, p := do(t, c, job(up, body))
			assert.Equal(t, 403, status)
			assert.Equal(t, "no", text)
			assert.True(t, p.Answered)
		}
	}
}

// A connection is not pooled while the upstream has not taken the whole request.
func TestAConnectionWithHalfARequestIsNotKept(t *testing.T) {
	release := make(chan struct{})
	up := listen(t, func(p *peer) {
		_, _ = p.in.ReadString('\n')
		p.say(ok)
		<-release
	})
	c := newClient(t, Config{})
	do(t, c, job(up, strings.Repeat("x", 64<<20)))
	assert.Zero(t, c.Idle()[up])
	close(release)
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

// A body that fails ends the exchange, though the upstream still waits for the rest.
func TestBodiesThatFail(t *testing.T) {
	broken := errors.New("the submitter went away")
	for name, body := range map[string]io.Reader{
		"fails":     failing{strings.NewReader("ab"), broken},
		"too short": strings.NewReader("ab"),
		"too long":  strings.NewReader("abcdef"),
	} {
		for _, answer := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"} {
			t.Run(name, func(t *testing.T) {
				up := listen(t, func(p *peer) {
					_, _ = p.in.ReadString('\n')
					p.say("%s", answer)
					p.gone()
				})
				c := newClient(t, Config{})
				r := job(up, "")
				wait := make(chan struct{})
				r.Body, r.Length = io.NopCloser(io.MultiReader(until(wait), body)), 4
				if answer == "" {
					close(wait)
				}
				res, p, err := c.Do(context.Background(), r)
				if answer != "" {
					require.NoError(t, err)
					close(wait)
					_, err = res.all()
				} else {
					assert.False(t, p.Answered)
					assert.False(t, p.InFull)
				}
				var failed *BodyError
				require.ErrorAs(t, err, &failed)
				if name == "fails" {
					require.ErrorIs(t, err, broken)
				}
				assert.Zero(t, c.Idle()[up])
			})
		}
	}
}

// until is a reader that is empty, as soon as the channel is closed.
func until(c chan struct{}) io.Reader {
	return readerFunc(func([]byte) (int, error) {
		<-c
		return 0, io.EOF
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A pooled connection that the upstream closes while the request is written: nothing of it was sent.
// A request whose submitter has left is not sent, on whatever connection.
func TestNothingIsSentForNobody(t *testing.T) {
	requests := make(chan string, 2)
	c := newClient(t, Config{Dial: network(func(p *peer) {
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			requests <- r.URL.Path
			p.say(ok)
		}
	})})
	do(t, c, job("up:1", "{}"))
	ctx, leave := context.WithCancelCause(t.Context())
	left := errors.New("the submitter has left")
	leave(left)
	_, p, err := c.Do(ctx, job("up:1", "{}"))
	require.ErrorIs(t, err, left)
	assert.Equal(t, Progress{}, p)
	assert.Equal(t, map[string]int{"up:1": 1}, c.Idle(), "the connection stays for others")
	assert.Len(t, requests, 1)
}

func TestNothingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Dial: network(func(p *peer) {
			if p.n == 1 {
				p.request()
				p.say(ok)
				time.Sleep(time.Second) // then it closes, as the next request is written
				return
			}
			p.request()
			p.say(ok)
		})})
		do(t, c, job("up:1", "{}"))
		_, p, err := c.Do(context.Background(), job("up:1", "{}"))
		require.Error(t, err)
		assert.Equal(t, Progress{Reused: true}, p)
		assert.True(t, p.Stale())
	})
}

// Memory of what is not sent at once must not be used again when Do has returned.
func TestWhatIsSentAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		request Request
		want    bool
	}{
		"no body":        {Request{}, true},
		"a small body":   {Request{Whole: make([]byte, inline)}, true},
		"a larger body":  {Request{Whole: make([]byte, inline+1)}, false},
		"with a trailer": {Request{Whole: make([]byte, 1), Trailer: http.Header{"End": nil}}, false},
		"still coming":   {Request{Body: io.NopCloser(strings.NewReader("a")), Length: 1}, false},
	} {
		assert.Equal(t, c.want, c.request.AtOnce(), name)
	}
}
