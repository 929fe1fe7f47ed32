package mesh

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const posted = `{"project_id":12345,"priority":"high"}`

func TestABufferedJob(t *testing.T) {
	f := newFixture(t, 4, nil)
	e := f.envoy()
	e.send(bufferedMode.headers(false, ":path", "/jobs?x=/other", "content-type", "application/json"))
	assert.NotNil(t, e.recv().GetRequestHeaders().GetResponse(), "the body is read first")
	e.send(requestPart(posted, true))
	reply := e.recv()
	assert.Nil(t, reply.GetRequestBody().GetResponse().GetBodyMutation(), "the body stays as it is")
	list := strings.Split(placedAt(t, reply), ",")
	assert.Len(t, list, 3, "as many as retry.attempts")
	e.send(responseHead(list[0], false, "200"))
	assert.NotNil(t, e.recv().GetResponseHeaders())
	inFlight, _ := f.balancer.Counts()
	assert.Equal(t, 1, inFlight, "until the stream ends")
	require.NoError(t, e.stream.CloseSend())

	j := f.ended(1)
	assert.Equal(t, []string{"POST", "/jobs"}, []string{j.Method, j.Path})
	assert.NotEmpty(t, j.Peer)
	assert.Equal(t, "12345", j.Facts.Project)
	assert.Equal(t, selection.High, j.Facts.Priority)
	assert.EqualValues(t, len(posted), j.Body)
	assert.Equal(t, 200, j.Status)
	assert.Equal(t, intake.Answered, j.Outcome)
	assert.Equal(t, intake.Complete, j.Completeness)
	assert.True(t, j.Unframed, "its end was not shown")
	require.Len(t, j.Attempts, 1)
	assert.Equal(t, pool.Answered, j.Attempts[0].Outcome)
}

// A gateway can name the tenant that a job counts for, and its objective. The job's project is still the key of the cache.
func TestFairnessAndObjective(t *testing.T) {
	f := newFixture(t, 4, func(c *job.Config) { c.Job.ExpectedHeader = "Job-Expected" })
	tenant, homes := intake.Key("tenant-1"), map[string]bool{}
	for n := range 5 {
		e := f.envoy()
		e.send(bufferedMode.headers(false, "content-type", "application/json", "x-gateway-inference-fairness-id", "tenant-1",
			"x-gateway-inference-objective", []string{"low", "batch"}[n%2]))
		e.recv()
		e.send(requestPart(posted, true))
		reply := e.recv()
		home, _, _ := strings.Cut(placedAt(t, reply), ",")
		assert.Equal(t, n > 0, strings.Contains(reply.String(), `"job-expected"`), "how long its project's jobs take")
		homes[home] = true
		assert.Equal(t, 1, f.pool.Open(tenant))
		assert.Equal(t, []dispatch.ProjectLoad{{Name: "tenant-1", InFlight: 1}}, f.balancer.Projects(time.Now(), 9))
		e.send(responseHead(home, false, "200"))
		e.recv()
		require.NoError(t, e.stream.CloseSend())
		j := f.ended(n + 1)
		assert.Equal(t, "12345", j.Facts.Project)
		assert.Equal(t, []selection.Priority{selection.Low, selection.High}[n%2], j.Facts.Priority, "batch is no priority")
	}
	for project, want := range map[string]int{"12345": len(homes), "tenant-1": 0} {
		ranked, err := f.balancer.Explain(pool.Request{Project: intake.Key(project)})
		require.NoError(t, err)
		assumed := slices.DeleteFunc(ranked, func(r pool.Ranked) bool { return r.Cache != "assumed" })
		assert.Len(t, assumed, want, "%s's data is where its jobs went", project)
	}
	assert.Zero(t, f.pool.Open(tenant))
}

// Prompts are split into blocks for Envoy's jobs, too: the blocks that were sent count as cached at their server, and the
// usage at the end of a response says how many tokens the server had cached.
func TestPromptsInBlocks(t *testing.T) {
	settings := intake.Default()
	settings.Project = intake.Places{{Pointer: "/prompt", Blocks: 1024}}
	f := newFixture(t, 4, func(c *job.Config) { c.Reader, _ = intake.NewReader(settings) })
	detector, err := overload.Settings{Policy: "none", Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	f.balancer.SetSettings(balancer.Settings{
		Pool:  pool.Settings{Policy: selection.DefaultExpected(), Detector: detector, Interval: 5 * time.Second, Breaker: health.Default()},
		Retry: dispatch.DefaultRetry(), Queue: dispatch.DefaultQueue(),
	})
	away := func(j *record.Job) (found, most float64) {
		ranked, err := f.balancer.Explain(pool.Request{Project: j.Facts.Key, Data: j.Facts.Data})
		require.NoError(t, err)
		for _, r := range ranked {
			found, most = max(found, r.Found), max(most, r.Cost.Placement/r.Cost.Fetch)
		}
		return found, most
	}
	for n := range 9 {
		e := f.envoy()
		e.send(duplexMode.headers(false, "content-type", "application/json"))
		e.send(requestPart(fmt.Sprintf(`{"prompt":"%d%s"}`, n, strings.Repeat("Once upon a time. ", 500)), true))
		home, _, _ := strings.Cut(placedAt(t, e.recv()), ",")
		e.recv()
		e.send(responseHead(home, false, "200"))
		e.recv()
		e.send(responsePart(`{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":100}}}`, true))
		e.recv()
		require.NoError(t, e.stream.CloseSend())
		found, most := away(f.ended(n + 1))
		assert.InDelta(t, 0.95, found, 1e-9)
		assert.Greater(t, most, 0.5, "0.4 without the usage in responses")
	}
}

// Bodies are not changed in duplex mode, in pieces of any size, kept or not.
func TestStreamedBodies(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		size   int
		budget int64
	}{
		"empty": {0, 1 << 20}, "small": {100, 1 << 20}, "one piece": {maxPiece, 1 << 20}, "large": {1 << 20, 2 << 20},
		"larger than the budget": {1 << 20, 0}, "a little larger": {64<<10 + 1, 0},
	} {
		for _, trailers := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, 2, func(cfg *job.Config) { cfg.Budget = intake.NewBudget(c.budget, 16<<20) })
				e := f.envoy()
				e.send(duplexMode.headers(false, "content-type", "text/plain"))
				body := make([]byte, c.size)
				for i := range body {
					body[i] = 'a' + byte(rng.IntN(26))
				}
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for rest := body; ; {
						n := min(len(rest), 1+rng.IntN(100_000))
						last := n == len(rest) && !trailers
						if e.stream.Send(requestPart(string(rest[:n]), last)) != nil {
							return
						}
						if rest = rest[n:]; len(rest) == 0 {
							break
						}
					}
					if trailers {
						_ = e.stream.Send(endOfRequest)
					}
				}()
				assert.Contains(t, placedAt(t, e.recv()), "10.0.0.")
				var got []byte
				for ended := false; !ended; {
					m := e.recv()
					if m.GetRequestTrailers() != nil {
						break
					}
					piece := m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
					require.NotNil(t, piece, "%v", m)
					got = append(got, piece.GetBody()...)
					ended = piece.GetEndOfStream()
					require.False(t, ended && trailers, "the trailers come last")
				}
				<-sent
				assert.Equal(t, string(body), string(got))
				e.send(responseHead("", false, "200"))
				e.recv()
				e.send(responsePart("right", false))
				assert.Equal(t, "right", string(e.recv().GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()))
				e.send(endOfResponse)
				assert.NotNil(t, e.recv().GetResponseTrailers())
				require.NoError(t, e.stream.CloseSend())
				j := f.ended(1)
				assert.Equal(t, intake.Complete, j.Completeness)
				assert.False(t, j.Unframed)
				assert.EqualValues(t, 5, j.Bytes)
				assert.Zero(t, f.cfg.Budget.Used())
			})
		}
	}
}

// Where all of a job's members are in headers, Envoy does not have to send bodies. A pool's address is found in any of its
// written forms.
func TestHeadersAlone(t *testing.T) {
	nowhere := intake.Place{Pointer: "none"}
	f := newFixture(t, 1, func(c *job.Config) {
		c.Reader, _ = intake.NewReader(intake.Settings{
			Project: intake.Places{{Header: "X-Project"}}, Priority: nowhere, QueueTimeout: nowhere, FirstByteTimeout: nowhere, StreamTimeout: nowhere, Session: nowhere, Bytes: nowhere, Prefetch: nowhere,
			LengthKey: intake.Places{{Header: "X-Channel"}},
		})
	})
	f.balancer.Set([]pool.Upstream{{Address: "10.0.0.1:9000"}, {Address: "[2001:db8::1]:9000"}})
	e := f.envoy()
	first := mode{}.headers(false, "content-length", "5", "x-project", "p7", "x-channel", "c")
	first.MetadataContext = metadata(subsetNamespace, subsetKey, structpb.NewStringValue("[2001:DB8:0::1]:9000"))
	e.send(first)
	assert.Equal(t, "[2001:db8::1]:9000", placedAt(t, e.recv()))
	e.send(responseHead("[2001:db8:0:0::1]:9000", false, "200"))
	e.recv()
	require.NoError(t, e.stream.CloseSend())
	j := f.ended(1)
	assert.Equal(t, []any{"p7", int64(5), intake.Answered, 1}, []any{j.Facts.Project, j.Body, j.Outcome, len(j.Attempts)})
	assert.NotZero(t, j.Facts.LengthKey)
}

func TestModes(t *testing.T) {
	const none, streamed, partial = modes.ProcessingMode_NONE, modes.ProcessingMode_STREAMED, modes.ProcessingMode_BUFFERED_PARTIAL
	for _, m := range []mode{{none, none}, {streamed, none}, {partial, none}, {modes.ProcessingMode_GRPC, none}, {modes.ProcessingMode_BUFFERED, streamed}, {modes.ProcessingMode_BUFFERED, partial}} {
		f := newFixture(t, 1, nil)
		e := f.envoy()
		e.send(m.headers(false))
		refused := e.recv().GetImmediateResponse()
		assert.EqualValues(t, 500, refused.GetStatus().GetCode(), "%v", m)
		assert.Contains(t, string(refused.GetBody()), "; set ")
		assert.Contains(t, string(refused.GetBody()), "body_mode is "+map[bool]string{true: m.request.String(), false: m.response.String()}[m.request != modes.ProcessingMode_BUFFERED])
		assert.Equal(t, intake.Rejected, f.ended(1).Outcome)
	}
	f := newFixture(t, 1, nil)
	e := f.envoy()
	first := duplexMode.headers(true)
	first.ProtocolConfig = nil
	e.send(first)
	assert.NotEmpty(t, placedAt(t, e.recv()), "the default mode is the protocol's")
	e.leave()
	f.ended(1)
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		upstreams int
		prepare   func(f *fixture)
		headers   []string
		body      string
		subset    *structpb.Value
		status    int
		reason    string
	}{
		"no upstreams":               {0, nil, nil, posted, nil, 503, "none-eligible"},
		"no place to wait":           {1, func(f *fixture) { f.overload(true); f.wait(2) }, nil, `{}`, nil, 503, "queue-full"},
		"no job":                     {1, nil, []string{"content-type", "application/json"}, `{"priority":"urgent"}`, nil, 400, "malformed-job"},
		"too large":                  {1, nil, []string{"content-length", "999999999"}, "", nil, 413, "body-too-large"},
		"its time is over":           {1, func(f *fixture) { f.overload(true) }, nil, `{"timeouts":{"queue_seconds":0.01}}`, nil, 503, "none-eligible"},
		"among none":                 {1, nil, nil, posted, structpb.NewListValue(&structpb.ListValue{}), 503, "none-eligible"},
		"among unknown upstreams":    {1, nil, nil, posted, structpb.NewStringValue("10.9.9.9:1, 10.9.9.9:2"), 503, "none-eligible"},
		"among overloaded upstreams": {1, func(f *fixture) { f.overload(true) }, nil, posted, structpb.NewStringValue(address(0)), 503, "none-eligible"},
	} {
		for _, m := range []mode{bufferedMode, duplexMode} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, c.upstreams, nil)
				if c.prepare != nil {
					c.prepare(f)
				}
				f.mu.Lock()
				before := len(f.records)
				f.mu.Unlock()
				e := f.envoy()
				first := m.headers(false, c.headers...)
				if c.subset != nil {
					first.MetadataContext = metadata(subsetNamespace, subsetKey, c.subset)
				}
				e.send(first)
				if c.body != "" {
					if m == bufferedMode {
						e.recv()
					}
					e.send(requestPart(c.body, true))
				}
				refused := e.recv().GetImmediateResponse()
				require.NotNil(t, refused)
				assert.EqualValues(t, c.status, refused.GetStatus().GetCode())
				assert.Contains(t, string(refused.GetBody()), `"type":"urn:pilotfish:problem:`+c.reason+`"`)
				set := map[string]string{}
				for _, h := range refused.GetHeaders().GetSetHeaders() {
					set[h.GetHeader().GetKey()] = string(h.GetHeader().GetRawValue())
				}
				want := map[string]string{"content-type": "application/problem+json", "pilotfish-reason": c.reason}
				if c.status == 503 {
					want["retry-after"] = "1"
				}
				j := f.ended(before + 1)
				want["x-request-id"] = j.ID
				assert.Equal(t, want, set)
				assert.Equal(t, c.status, j.Status)
				assert.Equal(t, c.reason, j.Reason)
				f.overload(false)
				for _, w := range f.waiting {
					assert.Equal(t, address(0), placedAt(t, w.recv()), "it waited for its place")
					w.leave()
				}
			})
		}
	}
}

func TestSubset(t *testing.T) {
	f := newFixture(t, 4, nil)
	for i := range 4 {
		e := f.envoy()
		first := bufferedMode.headers(true)
		list, err := structpb.NewList([]any{address(i), "10.9.9.9:1"})
		require.NoError(t, err)
		first.MetadataContext = metadata(subsetNamespace, subsetKey, structpb.NewListValue(list))
		e.send(first)
		assert.Equal(t, address(i), placedAt(t, e.recv()))
		e.leave()
		f.ended(i + 1)
	}
}

// Envoy can end the stream while the job waits, by a reset or by the end of its messages.
func TestStreamEndsWhileTheJobWaits(t *testing.T) {
	for _, reset := range []bool{false, true} {
		f := newFixture(t, 1, nil)
		f.overload(true)
		f.wait(1)
		e := f.waiting[0]
		if reset {
			e.leave()
		} else {
			require.NoError(t, e.stream.CloseSend())
		}
		j := f.ended(1)
		assert.Equal(t, intake.Gone, j.Outcome)
		assert.Equal(t, 499, j.Status)
		assert.Empty(t, j.Attempts)
	}
}

func TestFirstMessageMustBeHeaders(t *testing.T) {
	observing := bufferedMode.headers(true)
	observing.ObservabilityMode = true
	for name, m := range map[string]*ext.ProcessingRequest{
		"a response": responseHead("", true, "200"), "a body": requestPart(posted, true), "nothing": {}, "observing": observing,
	} {
		f := newFixture(t, 1, nil)
		e := f.envoy()
		e.send(m)
		_, err := e.stream.Recv()
		assert.Equal(t, codes.InvalidArgument, status.Code(err), name)
		f.mu.Lock()
		assert.Empty(t, f.records, name)
		f.mu.Unlock()
	}
}

// Each request has one record and no lease stays open, whatever messages Envoy sends in whatever order.
func TestAnyOrderOfMessages(t *testing.T) {
	f := newFixture(t, 3, nil)
	rng := rand.New(rand.NewPCG(7, 7))
	any := []func(m mode) *ext.ProcessingRequest{
		func(m mode) *ext.ProcessingRequest { return m.headers(rng.IntN(2) == 0) },
		func(mode) *ext.ProcessingRequest {
			return requestPart(posted[:rng.IntN(len(posted))], rng.IntN(2) == 0)
		},
		func(mode) *ext.ProcessingRequest { return requestPart(posted, rng.IntN(2) == 0) },
		func(mode) *ext.ProcessingRequest { return endOfRequest },
		func(mode) *ext.ProcessingRequest {
			return responseHead(address(rng.IntN(5)), rng.IntN(2) == 0, []string{"200", "503", "x"}[rng.IntN(3)])
		},
		func(mode) *ext.ProcessingRequest { return responsePart("x", rng.IntN(2) == 0) },
		func(mode) *ext.ProcessingRequest { return endOfResponse },
		func(mode) *ext.ProcessingRequest { return &ext.ProcessingRequest{} },
	}
	const streams = 400
	for range streams {
		m := []mode{bufferedMode, duplexMode, {duplexMode.request, bufferedMode.response}}[rng.IntN(3)]
		e := f.envoy()
		e.send(m.headers(rng.IntN(3) == 0))
		for range rng.IntN(8) {
			if e.stream.Send(any[rng.IntN(len(any))](m)) != nil {
				break
			}
		}
		if rng.IntN(2) == 0 {
			_ = e.stream.CloseSend()
			for err := error(nil); err == nil; {
				_, err = e.stream.Recv()
			}
		}
		e.leave()
	}
	f.settled(streams)
}
