package ruleserver

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/rules"
)

func TestFormatOf(t *testing.T) {
	for accept, want := range map[string]rules.Format{
		"":                                     rules.NDJSON,
		"*/*":                                  rules.NDJSON,
		"text/csv":                             rules.CSV,
		"Text/CSV; header=present":             rules.CSV,
		"text/csv, */*;q=0.1":                  rules.CSV,
		"text/csv;q=0":                         rules.NDJSON,
		"text/csv;q=high":                      rules.NDJSON,
		"text/csv;q=0.5, application/x-ndjson": rules.NDJSON,
		"application/x-ndjson;q=0.2,text/csv":  rules.CSV,
		"text/csv, application/x-ndjson":       rules.NDJSON,
		";;;,text/csv":                         rules.CSV,
	} {
		assert.Equal(t, want, formatOf(accept), accept)
	}
}

// oneConnection is a listener that accepts a single connection.
type oneConnection struct {
	conn     net.Conn
	accepted bool
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if l.accepted {
		return nil, net.ErrClosed
	}
	l.accepted = true
	return l.conn, nil
}

func (l *oneConnection) Addr() net.Addr { return l.conn.LocalAddr() }
func (l *oneConnection) Close() error   { return nil }

// TestStandingBody: a body that pauses for too long ends the job.
func TestStandingBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(records)
		s := newServer(t, func(c *Config) { c.OnJob = log.add })
		submitter, server := net.Pipe()
		web := &http.Server{Handler: s.Handler()}
		assert.ErrorIs(t, web.Serve(&oneConnection{conn: server}), net.ErrClosed)

		fmt.Fprint(submitter, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		begin := time.Now()
		response, err := http.ReadResponse(bufio.NewReader(submitter), nil)
		require.NoError(t, err)
		response.Body.Close()
		assert.Equal(t, bodyIdle, time.Since(begin))
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
		require.NoError(t, submitter.Close())
		synctest.Wait()
		assert.Equal(t, outcomeRejected, log.last(t).Outcome)
	})
}
