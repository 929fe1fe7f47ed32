package proxy_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// Each piece is written only once the one before has been read at the far
// end, so that holding any back would stop everything.
func TestEachPieceComesAtOnce(t *testing.T) {
	for name, tc := range map[string]struct{ head, before, after string }{
		"chunked": {"Transfer-Encoding: chunked\r\n", "5\r\n", "\r\n"},
		"length":  {"Content-Length: 1000\r\n", "", ""},
		"closing": {"Connection: close\r\n", "", ""},
	} {
		for submitter, submit := range map[string]func(testing.TB) *http.Client{"http/1.1": client, "h2c": h2c} {
			t.Run(name+" "+submitter, func(t *testing.T) {
				const pieces = 200
				confirmed := make(chan bool)
				up := scripted(t, func(p *peer) {
					p.request()
					p.say("HTTP/1.1 200 OK\r\n%s\r\n", tc.head)
					for range pieces {
						if !<-confirmed {
							return
						}
						p.say("%sline\n%s", tc.before, tc.after)
					}
					if tc.before != "" {
						p.say("0\r\n\r\n")
					}
				})
				c := startSidecar(t, setup{upstreams: []string{refusing(t), up.address}})
				defer close(confirmed)
				res, err := submit(t).Post(c.url("/"), "application/json", reader("{}"))
				require.NoError(t, err, "the head comes before any of the body")
				defer res.Body.Close()
				in := bufio.NewReader(res.Body)
				for range pieces {
					confirmed <- true
					line, err := in.ReadString('\n')
					require.NoError(t, err)
					require.Equal(t, "line\n", line)
				}
				_, err = in.ReadByte()
				require.Error(t, err)
			})
		}
	}
}

// silent sends the head and a part of the body, and the rest after a pause.
func silent(d time.Duration) func(*peer) {
	return func(p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
		time.Sleep(d)
		p.say("half")
	}
}

func TestSilenceAmidAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		job     string
		silence time.Duration
		cut     time.Duration // 0: not cut
		outcome pool.Outcome
	}{
		{"{}", 2 * time.Hour, 0, pool.Answered},
		{"{}", 4 * time.Hour, 3 * time.Hour, pool.Truncated},
		{`{"timeouts":{"queue_seconds":1,"evaluate_seconds":1}}`, 2 * time.Hour, 0, pool.Answered},
		{`{"timeouts":{"stream_seconds":20000}}`, 4 * time.Hour, 3 * time.Hour, pool.Truncated},
		{`{"timeouts":{"stream_seconds":60}}`, 59 * time.Second, 0, pool.Answered},
		{`{"timeouts":{"stream_seconds":60}}`, 61 * time.Second, time.Minute, pool.Gone},
	} {
		bubble(t, func(t *testing.T, m *memory) {
			c := startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", silent(tc.silence))}})
			_, text, _, err := m.submit(t, tc.job)
			r := c.seen(1)[0]
			assert.Equal(t, tc.outcome, r.Attempts[0].Outcome)
			if tc.cut == 0 {
				require.NoError(t, err)
				assert.Equal(t, "halfhalf", text)
				assert.Equal(t, tc.silence, r.Total)
				return
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, "half", text)
			assert.Equal(t, tc.cut, r.Total)
			assert.Equal(t, intake.Partial, r.Completeness)
		})
	}
}

// The write timeout of a piece starts when the piece arrives, not when the response starts.
func TestSilenceInAPiece(t *testing.T) {
	for name, framing := range map[string][2]string{
		"length": {"Content-Length: 8\r\n\r\nhalf", "half"},
		"chunk":  {"Transfer-Encoding: chunked\r\n\r\n8\r\nhalf", "half\r\n0\r\n\r\n"},
		"end":    {"Transfer-Encoding: chunked\r\n\r\n8\r\nhalfhalf\r\n0\r\n", "A: b\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				up := m.upstream(t, "up:1", func(p *peer) {
					p.request()
					p.say("HTTP/1.1 200 OK\r\n%s", framing[0])
					time.Sleep(time.Hour)
					p.say("%s", framing[1])
				})
				c := startSidecar(t, setup{network: m, upstreams: []string{up}})
				began := time.Now()
				res, err := m.client(t).Post("http://127.0.0.1:8080/v1/jobs", "application/json", strings.NewReader("{}"))
				require.NoError(t, err)
				defer res.Body.Close()
				assert.Equal(t, began, time.Now(), "the head does not wait for the piece")
				text, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				assert.Equal(t, "halfhalf", string(text))
				assert.Equal(t, pool.Answered, c.seen(1)[0].Attempts[0].Outcome)
			})
		})
	}
}
