package mesh

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/pool"
)

// The lease moves to the upstream that Envoy reports as the responding one. The attempts at the upstreams before it have failed.
func TestTheLeaseMovesToTheRespondingUpstream(t *testing.T) {
	for moved := range 3 {
		f := newFixture(t, 4, nil)
		e := f.envoy()
		list := strings.Split(placedAt(t, e.exchange(bufferedMode.headers(true))), ",")
		e.exchange(responseHead(list[moved], false, "200", "x-load", "1"))
		for _, s := range f.balancer.States() {
			assert.Equal(t, s.Address == list[moved], s.InFlight == 1, "upstream %s has %v jobs, and %s has responded", s.Address, s.InFlight, list[moved])
		}
		e.leave()
		j := f.ended(1)
		require.Len(t, j.Attempts, moved+1)
		for i, a := range j.Attempts {
			assert.Equal(t, list[i], a.Upstream, "upstream of attempt %d of %d", i+1, moved+1)
			assert.Equal(t, i == moved, a.Outcome == pool.Answered, "attempt %d of %d: %v", i+1, moved+1, a.Outcome)
			assert.Equal(t, i == moved, a.Hint != nil, "only the last attempt has a load hint: attempt %d of %d", i+1, moved+1)
		}
	}
	f := newFixture(t, 2, nil)
	e := f.envoy()
	e.exchange(bufferedMode.headers(true))
	e.exchange(responseHead("10.9.9.9:1", true, "200"))
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
			e.exchange(c.mode.headers(true))
			for _, m := range c.messages {
				e.exchange(m)
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

// Envoy adds x-envoy-upstream-service-time to the responses of upstreams by default. After the first response with
// this header, a 5xx without it is Envoy's own, also on the next connection.
func TestResponsesOfEnvoyItself(t *testing.T) {
	f := newFixture(t, 1, nil)
	var want []intake.Outcome
	for _, c := range []struct {
		status  string
		timed   bool // the response has the header
		outcome intake.Outcome
	}{
		{"503", false, intake.Failed}, {"200", true, intake.Answered}, {"503", false, intake.NoAnswer},
		{"503", true, intake.Failed}, {"404", false, intake.Answered}, {"504", false, intake.NoAnswer},
	} {
		if len(want) == 5 {
			defer f.client.Close()
			f.client = f.dial()
		}
		e := f.envoy()
		e.exchange(bufferedMode.headers(true))
		var more []string
		if c.timed {
			more = []string{"x-envoy-upstream-service-time", "3"}
		}
		e.exchange(responseHead("", true, c.status, more...))
		require.NoError(t, e.stream.CloseSend())
		want = append(want, c.outcome)
		j := f.ended(len(want))
		assert.Equal(t, c.outcome, j.Outcome, "response %d", len(want))
		assert.Equal(t, c.status, strconv.Itoa(j.Status), "response %d", len(want))
	}
}

// A panic ends its own stream, and the lease.
func TestAPanicEndsTheLease(t *testing.T) {
	f := newFixture(t, 1, func(c *job.Config) {
		c.Hint = func(http.Header, time.Time) (pool.Hint, error) { panic("a test") }
	})
	e := f.envoy()
	e.exchange(bufferedMode.headers(true))
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
	e.exchange(duplexMode.headers(true))
	e.exchange(responseHead("", false, "200"))
	e.exchange(trailers)
	e.leave()
	j := f.ended(1)
	assert.Equal(t, intake.Answered, j.Outcome)
	require.NotNil(t, j.Attempts[0].Hint)

	e = f.envoy()
	e.exchange(duplexMode.headers(true))
	e.exchange(trailers) // before the headers: nobody has responded
	e.leave()
	assert.Nil(t, f.ended(2).Attempts[0].Hint)
}

// FuzzDecode compares decode with generated code, on whatever that can read.
func FuzzDecode(f *testing.F) {
	full := bufferedMode.headers(true, ":path", "/a?b", "content-type", "x", "x-a", "1", "X-A", "2")
	full.Attributes = map[string]*structpb.Struct{attributesNamespace: {Fields: map[string]*structpb.Value{detailsKey: structpb.NewStringValue("via_upstream")}}}
	subset := duplexMode.headers(false)
	subset.MetadataContext = metadata(subsetNamespace, subsetKey, structpb.NewStringValue("a:1, B:2 ,"))
	for _, m := range []*ext.ProcessingRequest{full, subset, requestPart(posted, true), responseHead("10.0.0.1:80", false, "200"), endOfResponse, {}} {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte("\x12\x06\x0a\x04\x0a\x02\x10\x01\x50\x00")) // a header's value is a number
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decode(b)
		var want ext.ProcessingRequest
		if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, &want) != nil {
			return
		}
		b, err := proto.Marshal(&want) // each field once, as Envoy writes it
		require.NoError(t, err)
		got, err := decode(b)
		if err != nil {
			assert.True(t, err == errHeaders || err == errSubset, "%v: %v", err, &want) //nolint:errorlint // they are not wrapped
			return
		}
		headers, end := map[kind]*core.HeaderMap{
			requestHeaders: want.GetRequestHeaders().GetHeaders(), responseHeaders: want.GetResponseHeaders().GetHeaders(),
			requestTrailers: want.GetRequestTrailers().GetTrailers(), responseTrailers: want.GetResponseTrailers().GetTrailers(),
		}[got.kind], want.GetRequestHeaders().GetEndOfStream() || want.GetResponseHeaders().GetEndOfStream() ||
			want.GetRequestBody().GetEndOfStream() || want.GetResponseBody().GetEndOfStream()
		all := http.Header{}
		for _, h := range headers.GetHeaders() {
			if key := h.GetKey(); key != "" && key[0] != ':' {
				value := h.GetValue()
				if len(h.GetRawValue()) > 0 {
					value = string(h.GetRawValue())
				}
				all.Add(key, value)
			}
		}
		assert.Len(t, got.header, len(all))
		for name := range all {
			assert.Equal(t, all[name], got.header[name])
		}
		assert.Equal(t, end, got.end)
		assert.Equal(t, string(want.GetRequestBody().GetBody())+string(want.GetResponseBody().GetBody()), string(got.body))
		assert.Equal(t, want.GetObservabilityMode(), got.observability)
		text := func(namespaces map[string]*structpb.Struct, namespace, key string) string {
			return stored([]byte(namespaces[namespace].GetFields()[key].GetStringValue()))
		}
		assert.Equal(t, text(want.GetMetadataContext().GetFilterMetadata(), lbNamespace, servedKey), got.served)
		assert.Equal(t, text(want.GetAttributes(), attributesNamespace, detailsKey), got.details)
		if limit := want.GetMetadataContext().GetFilterMetadata()[subsetNamespace].GetFields()[subsetKey]; assert.Equal(t, limit != nil, got.hasSubset) {
			given := strings.Split(limit.GetStringValue(), ",")
			for _, v := range limit.GetListValue().GetValues() {
				given = append(given, v.GetStringValue())
			}
			n := 0
			for _, address := range given {
				if strings.TrimSpace(address) != "" {
					n++
				}
			}
			assert.Len(t, got.subset, n)
		}
	})
}
