package proxy_test

import (
	"bufio"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
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
