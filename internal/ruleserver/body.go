package ruleserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

var errEncoded = errors.New("the body has a Content-Encoding: send it as it is")

// errBody says that a request's body did not come whole.
type errBody struct{ err error }

func (e errBody) Error() string { return fmt.Sprintf("reading the body: %v", e.err) }
func (e errBody) Unwrap() error { return e.err }

// readBody reads a whole body of bounded size. It may come slowly, but not stand
// still for longer than the configured time.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "" {
		return nil, errEncoded
	}
	connection := http.NewResponseController(w)
	reader := &idleReader{
		from: http.MaxBytesReader(w, r.Body, s.config.MaxBody),
		// Where the connection has no deadlines, its owner bounds it.
		before: func() { _ = connection.SetReadDeadline(time.Now().Add(s.config.BodyIdle)) },
	}
	body, err := io.ReadAll(reader)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, errBody{err}
	}
	_ = connection.SetReadDeadline(time.Time{}) // or the job would end with it
	return body, nil
}

type idleReader struct {
	from   io.Reader
	before func()
}

func (r *idleReader) Read(p []byte) (int, error) {
	r.before()
	return r.from.Read(p)
}
