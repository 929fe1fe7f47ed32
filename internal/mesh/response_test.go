package mesh

import (
	"net/http"
	"strings"
	"testing"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/pool"
)

// The lease moves to the upstream that Envoy reports as the responding one. The attempts at the upstreams before it have failed.
func TestTheServedUpstreamHasTheLease(t *testing.T) {
	for moved := range 3 {
		f := newFixture(t, 4, nil)
		e := f.envoy()
		e.send(bufferedMode.headers(true))
		list := strings.Split(placedAt(t, e.recv()), ",")
		e.send(responseHead(list[moved], false, "200", "x-load", "1"))
		e.recv()
		for _, s := range f.balancer.States() {
			assert.Equal(t, s.Address == list[moved], s.InFlight == 1)
		}
		e.leave()
		j := f.ended(1)
		require.Len(t, j.Attempts, moved+1)
		for i, a := range j.Attempts {
			assert.Equal(t, list[i], a.Upstream)
			assert.Equal(t, i == moved, a.Outcome == pool.Answered)
			assert.Equal(t, i == moved, a.Hint != nil)
		}
	}
	f := newFixture(t, 2, nil)
	e := f.envoy()
	e.send(bufferedMode.headers(true))
	e.recv()
	e.send(responseHead("10.9.9.9:1", true, "200"))
	e.recv()
	inFlight, _ := f.balancer.Counts()
	assert.Zero(t, inFlight, "an upstream that only Envoy knows has no lease")
	e.leave()
	assert.Equal(t, intake.Answered, f.ended(1).Outcome)
}

func TestOutcomes(t *testing.T) {
	own := responseHead("", true, "503")
	own.Attributes = map[string]*structpb.Struct{attributesNamespace: {Fields: map[string]*structpb.Value{
		"response.code_details": structpb.NewStringValue("upstream_reset_before_response_started{connection_termination}"),
	}}}
	for name, c := range map[string]struct {
		mode         mode
		messages     []*ext.ProcessingRequest
		outcome      intake.Outcome
		attempt      pool.Outcome
		completeness intake.Completeness
		status       int
	}{
		"complete":              {duplexMode, []*ext.ProcessingRequest{responseHead("", false, "200"), responsePart("x", true)}, intake.Answered, pool.Answered, intake.Complete, 200},
		"complete without body": {duplexMode, []*ext.ProcessingRequest{responseHead("", true, "204")}, intake.Answered, pool.Answered, intake.Complete, 204},
		"cut":                   {duplexMode, []*ext.ProcessingRequest{responseHead("", false, "200"), responsePart("x", false)}, intake.Gone, pool.Gone, intake.Partial, 200},
		"failed":                {bufferedMode, []*ext.ProcessingRequest{responseHead("", false, "500")}, intake.Failed, pool.Failed, intake.Complete, 500},
		"not started":           {bufferedMode, []*ext.ProcessingRequest{responseHead("", false, "503", "retry-after", "1")}, intake.Failed, pool.NotStarted, intake.Complete, 503},
		"no response":           {bufferedMode, nil, intake.Gone, pool.Gone, intake.Absent, 499},
		"Envoy's own":           {bufferedMode, []*ext.ProcessingRequest{own}, intake.NoAnswer, pool.Refused, intake.Absent, 503},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, nil)
			e := f.envoy()
			e.send(c.mode.headers(true))
			e.recv()
			for _, m := range c.messages {
				e.send(m)
				e.recv()
			}
			e.leave()
			j := f.ended(1)
			assert.Equal(t, c.outcome, j.Outcome)
			assert.Equal(t, c.completeness, j.Completeness)
			assert.Equal(t, c.status, j.Status)
			require.Len(t, j.Attempts, 1)
			assert.Equal(t, c.attempt, j.Attempts[0].Outcome)
		})
	}
}

// A panic ends its own stream, and the lease.
func TestAPanicEndsTheLease(t *testing.T) {
	f := newFixture(t, 1, func(c *job.Config) {
		c.Hint = func(http.Header, time.Time) (pool.Hint, bool) { panic("a test") }
	})
	e := f.envoy()
	e.send(bufferedMode.headers(true))
	e.recv()
	e.send(responseHead("", false, "200"))
	_, err := e.stream.Recv()
	assert.Equal(t, codes.Internal, status.Code(err))
	f.ended(1)
	inFlight, _ := f.balancer.Counts()
	assert.Zero(t, inFlight)
}

// A load report in trailers counts if the headers have none.
func TestLoadInTrailers(t *testing.T) {
	trailers := &ext.ProcessingRequest{Request: &ext.ProcessingRequest_ResponseTrailers{ResponseTrailers: &ext.HttpTrailers{
		Trailers: httpHeaders(false, "x-load", "1").GetHeaders(),
	}}}
	f := newFixture(t, 1, nil)
	e := f.envoy()
	e.send(duplexMode.headers(true))
	e.recv()
	e.send(responseHead("", false, "200"))
	e.recv()
	e.send(trailers)
	e.recv()
	e.leave()
	j := f.ended(1)
	assert.Equal(t, intake.Answered, j.Outcome)
	require.NotNil(t, j.Attempts[0].Hint)

	e = f.envoy()
	e.send(duplexMode.headers(true))
	e.recv()
	e.send(trailers) // before the headers: nobody has responded
	e.recv()
	e.leave()
	assert.Nil(t, f.ended(2).Attempts[0].Hint)
}
