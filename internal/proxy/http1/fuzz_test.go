package http1

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/wirecases"
)

// smuggled are heads that proxies and servers have read in two ways.
var smuggled = []string{
	"Content-Length: 3\r\nContent-Length: 4", "Content-Length: 3, 3", "Content-Length : 3", "Content-Length:3", "Content-Length: +3",
	"Content-Length: 0003", "Content-Length: 3 ", "Content-Length:\t3", "Content-Length: 3\x0b", "Content-Length: 3;a", "Content_Length: 3",
	"Content-Length: 9999999999999999", "Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding: xchunked",
	"Transfer-Encoding:\x0bchunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: chunked\r\nContent-Length: 3",
	"Transfer-Encoding: chunked\r\nTrailer: Content-Length", "X: 1\r\n Content-Length: 3", "X: 1\rContent-Length: 3", "X: 1\nContent-Length: 3",
	"X: \x00", "X\x00: 1", ": 1", " X: 1", "X", "X: 1\r\n\t", "Host: a\r\nHost: b", "Pragma: no-cache", "Connection: close, X-A\r\nX-A: 1",
}

// Whatever a head is, it is read here as net/http reads it, or refused, except for what net/http adds and takes out.
func FuzzHeads(f *testing.F) {
	for _, line := range smuggled {
		f.Add("POST /a HTTP/1.1\r\nHost: localhost\r\n" + line + "\r\n\r\nabc")
		f.Add("HTTP/1.1 200 OK\r\n" + line + "\r\n\r\nabc")
	}
	for _, c := range append(wirecases.Requests(), wirecases.Responses()...) {
		f.Add(c.Sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		size := Size([]byte(sent))
		if size == 0 {
			return
		}
		text := sent[:size]
		in := bufio.NewReader(strings.NewReader(sent))
		if r, h, err := Request(context.Background(), text, nil); err == nil {
			want, err := http.ReadRequest(in)
			if onlyTrailer(t, text, err) {
				return
			}
			requireSame(t, want.Header, r.Header, h.Fields)
			assert.Equal(t, []any{want.Method, want.RequestURI, want.URL, want.Proto, want.Host, want.ContentLength, want.TransferEncoding, want.Close},
				[]any{r.Method, r.RequestURI, r.URL, r.Proto, r.Host, r.ContentLength, r.TransferEncoding, r.Close})
		}
		in.Reset(strings.NewReader(sent))
		for _, method := range []string{"GET", "HEAD"} {
			in.Reset(strings.NewReader(sent))
			r, h, err := Response(text, method)
			if err != nil || r.StatusCode < 100 {
				continue
			}
			want, err := http.ReadResponse(in, &http.Request{Method: method})
			if onlyTrailer(t, text, err) {
				return
			}
			requireSame(t, want.Header, r.Header, h.Fields)
			assert.Equal(t, []any{want.Status, want.StatusCode, want.Proto, want.ContentLength, want.TransferEncoding, want.Close, want.Body != http.NoBody},
				[]any{r.Status, r.StatusCode, r.Proto, r.ContentLength, r.TransferEncoding, r.Close, HasBody(r, method)})
		}
	})
}

// onlyTrailer reports whether net/http refuses a head, which it may for its Trailer alone.
func onlyTrailer(t *testing.T, text string, err error) bool {
	if err != nil {
		require.ErrorContains(t, err, "bad trailer key", "%q", text)
	}
	return err != nil
}

// requireSame compares headers. Appended in the order received, they are the same header again.
func requireSame(t *testing.T, want, got http.Header, received []Field) {
	out, invalid := Append([]byte("GET / HTTP/1.1\r\n"), got, received)
	if invalid == "" && got["Host"] == nil && got["Content-Length"] == nil && len(got) > 0 {
		again, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(out), strings.NewReader("Host: a\r\n\r\n"))))
		require.NoError(t, err)
		delete(again.Header, "Host")
		clean(again.Header, got)
		require.Equal(t, got, again.Header)
	}
	clean(want, got)
	require.Equal(t, want, got)
}

// clean takes out what net/http adds or takes out.
func clean(headers ...http.Header) {
	for _, h := range headers {
		for _, key := range []string{"Connection", "Cache-Control", "Trailer"} {
			delete(h, key)
		}
		for _, values := range h {
			for i, v := range values {
				values[i] = strings.Trim(v, " \t") // a folded line leaves a space at the end
			}
		}
	}
}

// A head keeps the order and the spelling of its fields, however many it has.
func TestTheOrderOfManyFields(t *testing.T) {
	for _, n := range []int{1, manyFields - 1, manyFields, manyFields + 1, 3000} {
		fields := "Host: a\r\n"
		for i := range n {
			fields += fmt.Sprintf("x-%d: %d\r\nX-Twice: %d\r\n", i, i, i)
		}
		r, h, err := Request(t.Context(), "GET / HTTP/1.1\r\n"+fields+"\r\n", nil)
		require.NoError(t, err)
		out, _ := Append(nil, r.Header, h.Fields, [2]string{"Host", h.Host})
		require.Equal(t, fields, string(out))
	}
}

// What most messages look like is parsed here, with few allocations.
func TestPlainHeads(t *testing.T) {
	request := "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nx-a: 1\r\nX-A: 2\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n"
	response := "HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nDate: now\r\nContent-Length: 2\r\n\r\n"
	r, fields := plainRequest(t.Context(), request, nil)
	require.NotNil(t, r)
	require.Len(t, fields, 6)
	p, fields := plainResponse(response)
	require.NotNil(t, p)
	require.Len(t, fields, 3)
	ctx := t.Context()
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = plainRequest(ctx, request, nil) }), 7.0)
	h := make(http.Header)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { clear(h); _, _ = plainRequest(ctx, request, h) }), 5.0)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = plainResponse(response) }), 4.0)
}

// Chunks are read in the pieces in which they are received, whatever their extensions are, and the trailer section
// may be longer than the buffer. net/http waits for the end of a chunk, and refuses the others.
func TestChunks(t *testing.T) {
	many := strings.Repeat("1;signature="+strings.Repeat("f", 64)+"\r\nx\r\n", 1000)
	long := "X: " + strings.Repeat("y", 10_000) + "\r\n"
	c := &Chunks{In: bufio.NewReaderSize(strings.NewReader(many+"0\r\n"+long+long+"\r\nrest"), 4096), MaxTrailer: 64 << 10}
	body, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("x", 1000), string(body))
	assert.Len(t, c.Trailer["X"], 2)
	rest, err := io.ReadAll(c.In)
	require.NoError(t, err)
	assert.Equal(t, "rest", string(rest))

	from, to := io.Pipe()
	c = &Chunks{In: bufio.NewReaderSize(from, 4096), MaxTrailer: 64}
	go func() { _, _ = io.WriteString(to, "5\r\nab") }()
	piece := make([]byte, 10)
	n, err := c.Read(piece)
	require.NoError(t, err)
	assert.Equal(t, "ab", string(piece[:n]))

	for _, sent := range []string{
		"1;" + strings.Repeat("x", 5000) + "\r\nx\r\n0\r\n\r\n", strings.Repeat("1;"+strings.Repeat("x", 3000)+"\r\nx\r\n", 10) + "0\r\n\r\n",
		"0\r\nX: " + strings.Repeat("y", 70_000) + "\r\n\r\n", "1\r\nx\r\n0\r\nX: 1\n\r\n", "1\nx\n0\n\n", "1\r\nxy\r\n0\r\n\r\n", "1\r\r\nx\r\n0\r\n\r\n",
		"10000000000000000\r\n", "-1\r\n", "1\r\nx\r\n", "1\r\nx\r\n0\r\n", "1\r\nx\r\n0\r\n\r", "",
	} {
		c := &Chunks{In: bufio.NewReaderSize(strings.NewReader(sent), 4096), MaxTrailer: 64 << 10}
		_, err := io.ReadAll(c)
		require.Error(t, err, "%.60q", sent)
	}
}

// FuzzChunks holds bodies in chunks against net/http's reader.
func FuzzChunks(f *testing.F) {
	for _, sent := range []string{"1\r\nx\r\n0\r\n\r\n", "1;a\r\nx\r\n0\r\nX: 1\r\n\r\n", "a\r\n0123456789\r\n00\r\n\r\nGET /", "1 \r\nx\r\n0\r\n\r\n", "1\r\nx0\r\n\r\n"} {
		f.Add(sent, uint8(3))
	}
	f.Fuzz(func(t *testing.T, sent string, size uint8) {
		all := bufio.NewReader(strings.NewReader("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + sent))
		r, err := http.ReadRequest(all)
		require.NoError(t, err)
		want, refused := io.ReadAll(r.Body)
		in := bufio.NewReader(io.MultiReader(strings.NewReader(sent[:min(len(sent), int(size))]), strings.NewReader(sent[min(len(sent), int(size)):])))
		c := &Chunks{In: in, MaxTrailer: 4 << 10}
		got, err := io.ReadAll(c)
		if err != nil {
			bareLF := strings.Contains(strings.ReplaceAll(sent, "\r\n", ""), "\n")
			require.True(t, refused != nil || bareLF, "%v: %q", err, sent)
			return
		}
		if refused != nil && strings.Contains(sent, ";") {
			return // a space before the extension, or many extensions
		}
		require.NoError(t, refused)
		assert.Equal(t, want, got)
		assert.Equal(t, r.Trailer, c.Trailer)
		rest, _ := io.ReadAll(all)
		left, _ := io.ReadAll(in)
		assert.Equal(t, rest, left, "where the body ends")
	})
}
