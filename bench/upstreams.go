//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"example.org/pilotfish/internal/cli"
)

// The paths of the stub upstreams.
const (
	jobPath    = "/v1/jobs" // answered at once
	slowPath   = "/slow"    // answered at once, but for the last piece, which comes after slowPause
	streamPath = "/stream/" // so many bytes, in chunks
	waitPath   = "/wait"    // answered never
	countPath  = "/waiting" // how many jobs wait
)

// slowPause is long enough for a proxy that holds pieces back to be seen doing it.
const slowPause = 3 * time.Millisecond

// upstreamsCommand serves jobs on several ports. It is written for speed: what
// it costs is taken from the proxies.
type upstreamsCommand struct {
	Ports int `default:"4" help:"How many upstreams."`
}

func (c *upstreamsCommand) Run(s cli.Console) error {
	var stubs stubs
	for range c.Ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		fmt.Fprintln(s.Out, l.Addr())
		go stubs.serve(l, new(stub))
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	return nil
}

// stubs are all upstreams.
type stubs struct {
	waiting atomic.Int64
}

// stub is one upstream.
type stub struct {
	completed atomic.Int64
	projects  [projects]atomic.Bool // those that it has seen, which are cached from then on
}

func (s *stubs) serve(l net.Listener, u *stub) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			s.connection(c, u)
		}()
	}
}

// connection answers what comes on a connection until it ends.
func (s *stubs) connection(c net.Conn, u *stub) {
	in := bufio.NewReaderSize(c, 16<<10)
	for {
		path, length, err := readHead(in)
		if err != nil {
			return
		}
		project, err := readBody(in, length)
		if err != nil {
			return
		}
		if project >= 0 && project < projects {
			u.projects[project].Store(true)
		}
		if s.answer(c, u, path) != nil {
			return
		}
	}
}

// readHead reads a request's head. length is -1 for a body in chunks.
func readHead(in *bufio.Reader) (path string, length int, err error) {
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return path, length, nil
		}
		if first {
			fields := bytes.Fields(line)
			if len(fields) != 3 {
				return "", 0, fmt.Errorf("request line %q", line)
			}
			path = string(fields[1])
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return "", 0, err
			}
		case len(name) == len("Transfer-Encoding") && bytes.EqualFold(name, []byte("Transfer-Encoding")):
			length = -1
		}
	}
}

// readBody reads a job's body and the project that stands at its end; -1 is none.
func readBody(in *bufio.Reader, length int) (project int, err error) {
	if length < 0 {
		return -1, fmt.Errorf("bodies in chunks are not expected")
	}
	const most = 32 // bytes that the end of a body takes
	if length > most {
		if _, err := in.Discard(length - most); err != nil {
			return -1, err
		}
		length = most
	}
	end, err := in.Peek(length)
	if err != nil {
		return -1, err
	}
	project = -1
	if digits := bytes.TrimRight(end, "}"); len(digits) > 0 {
		if n, err := strconv.Atoi(string(digits[bytes.LastIndexByte(digits, ':')+1:])); err == nil {
			project = n
		}
	}
	_, err = in.Discard(length)
	return project, err
}

var jobAnswer = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 64\r\n\r\n" + strings.Repeat("id,title,price\n", 4) + "end\n")

func (s *stubs) answer(c net.Conn, u *stub, path string) error {
	switch {
	case path == jobPath:
		u.completed.Add(1)
		_, err := c.Write(jobAnswer)
		return err
	case path == slowPath:
		_, err := c.Write(jobAnswer[:len(jobAnswer)-4])
		if err == nil {
			time.Sleep(slowPause)
			_, err = c.Write(jobAnswer[len(jobAnswer)-4:])
		}
		return err
	case path == waitPath:
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		_, err := io.Copy(io.Discard, c)
		return err
	case strings.HasPrefix(path, streamPath):
		n, err := strconv.ParseInt(path[len(streamPath):], 10, 64)
		if err != nil {
			return err
		}
		return streamAnswer(c, n)
	}
	return say(c, u.page(path, s.waiting.Load()))
}

// page is what the stub tells of itself: nothing to do, 64 cores, and the projects that it has.
func (u *stub) page(path string, waiting int64) string {
	switch path {
	case countPath:
		return strconv.FormatInt(waiting, 10)
	case "/metrics":
		return fmt.Sprintf("ruleserver_stalled_joblets 0\nruleserver_jobs_running 0\nruleserver_cores 64\nruleserver_cores_busy 0\nruleserver_jobs_completed_total %d\n", u.completed.Load())
	}
	var b strings.Builder
	b.WriteString(`{"projects":[`)
	separator := ""
	for i := range u.projects {
		if u.projects[i].Load() {
			fmt.Fprintf(&b, `%s{"id":%d}`, separator, i)
			separator = ","
		}
	}
	b.WriteString("]}")
	return b.String()
}

func say(c net.Conn, text string) error {
	kind := "text/plain; version=0.0.4"
	if strings.HasPrefix(text, "{") {
		kind = "application/json"
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", http.StatusOK, kind, len(text), text)
	return err
}

// streamAnswer sends n bytes in chunks of 32 KiB.
func streamAnswer(c net.Conn, n int64) error {
	const size = 32 << 10
	chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", size, bytes.Repeat([]byte("x"), size))
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	for ; n >= size; n -= size {
		if _, err := c.Write(chunk); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(c, "%s0\r\n\r\n", lastChunk(n))
	return err
}

func lastChunk(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("x", int(n)))
}
