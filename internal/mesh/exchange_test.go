package mesh

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
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

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
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
	reply := e.exchange(requestPart(posted, true))
	assert.Nil(t, reply.GetRequestBody().GetResponse().GetBodyMutation(), "the body stays as it is")
	list := strings.Split(placedAt(t, reply), ",")
	assert.Len(t, list, 3, "as many as retry.attempts")
	assert.NotNil(t, e.exchange(responseHead(list[0], false, "200")).GetResponseHeaders())
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
		reply := e.exchange(requestPart(posted, true))
		home, _, _ := strings.Cut(placedAt(t, reply), ",")
		assert.Equal(t, n > 0, strings.Contains(reply.String(), `"job-expected"`), "how long its project's jobs take")
		homes[home] = true
		assert.Equal(t, 1, f.pool.Open(tenant))
		assert.Equal(t, []dispatch.ProjectLoad{{Name: "tenant-1", InFlight: 1}}, f.balancer.Projects(time.Now(), 9))
		e.exchange(responseHead(home, false, "200"))
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
	f.pool.SetSettings(pool.Settings{Policy: selection.DefaultExpected(), Interval: 5 * time.Second, Breaker: health.Default()})
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
		e.exchange(responseHead(home, false, "200"))
		e.exchange(responsePart(`{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":100}}}`, true))
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
				body := strings.Repeat("a body ", c.size/7+1)[:c.size]
				var parts []*ext.ProcessingRequest
				for rest := body; len(parts) == 0 || rest != ""; {
					n := min(len(rest), 1+rng.IntN(100_000))
					parts = append(parts, requestPart(rest[:n], n == len(rest) && !trailers))
					rest = rest[n:]
				}
				if trailers {
					parts = append(parts, endOfRequest)
				}
				go func() { // while the test receives
					for _, part := range parts {
						_ = e.stream.Send(part)
					}
				}()
				assert.Contains(t, placedAt(t, e.recv()), "10.0.0.")
				got, byTrailers := e.body()
				assert.Equal(t, body, got)
				assert.Equal(t, trailers, byTrailers)
				e.exchange(responseHead("", false, "200"))
				e.send(responsePart("right", false))
				assert.Equal(t, "right", string(e.recv().GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()))
				assert.NotNil(t, e.exchange(endOfResponse).GetResponseTrailers())
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

// Envoy 1.35 and later can repeat the last part of a large body. It is not forwarded twice, whether it
// arrives before the upstream is known, after it, or in a response.
func TestRepeatedEndsOfBodies(t *testing.T) {
	for name, budget := range map[string]int64{"kept": 1 << 20, "not kept": 0} {
		f := newFixture(t, 1, func(cfg *job.Config) { cfg.Budget = intake.NewBudget(budget, 1<<20) })
		e := f.envoy()
		e.send(duplexMode.headers(false, "content-type", "text/plain"))
		body := strings.Repeat("a", 70_000)
		for _, part := range []string{body, "last"} {
			e.send(requestPart(part, part == "last"))
		}
		placedAt(t, e.exchange(requestPart("last", true)))
		got, _ := e.body()
		assert.Equal(t, body+"last", got, name)
		e.send(requestPart("last", true))
		require.NotNil(t, e.exchange(responseHead("", false, "200")).GetResponseHeaders(), "%s: the end is forwarded once", name)
		for range 2 {
			e.send(responsePart("right", true))
		}
		require.NotNil(t, e.recv().GetResponseBody())
		require.NoError(t, e.stream.CloseSend())
		_, err := e.stream.Recv()
		require.ErrorIs(t, err, io.EOF, "%s: the end is forwarded once", name)
		j := f.ended(1)
		assert.Equal(t, []any{intake.Answered, int64(5)}, []any{j.Outcome, j.Bytes}, name)
	}
}

// Of a long body, Envoy can send only the first bytes.
func TestFirstBytesOfABody(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		end     bool
		length  string
		project string
		bytes   int64
	}{
		"the project is in them": {posted[:25], false, "1000", "12345", 1000},
		"it is not":              {posted[:10], false, "1000", "", 1000},
		"the whole body":         {posted, true, strconv.Itoa(len(posted)), "12345", int64(len(posted))},
		"before trailers":        {posted, false, strconv.Itoa(len(posted)), "12345", int64(len(posted))},
	} {
		f := newFixture(t, 1, nil)
		e := f.envoy()
		require.NotNil(t, e.exchange(partialMode.headers(false, "content-type", "application/json", "content-length", c.length)).GetRequestHeaders(), name)
		placedAt(t, e.exchange(requestPart(c.body, c.end)))
		e.leave()
		j := f.ended(1)
		assert.Equal(t, c.project, j.Facts.Project, name)
		assert.Equal(t, c.bytes, j.Body, name)
	}
}

func TestModes(t *testing.T) {
	const none, streamed, partial = modes.ProcessingMode_NONE, modes.ProcessingMode_STREAMED, modes.ProcessingMode_BUFFERED_PARTIAL
	for _, m := range []mode{{none, none}, {streamed, none}, {modes.ProcessingMode_GRPC, none}, {modes.ProcessingMode_BUFFERED, streamed}, {modes.ProcessingMode_BUFFERED, partial}} {
		f := newFixture(t, 1, nil)
		e := f.envoy()
		refused := e.exchange(m.headers(false)).GetImmediateResponse()
		assert.EqualValues(t, 500, refused.GetStatus().GetCode(), "%v", m)
		assert.Contains(t, string(refused.GetBody()), "; set ")
		assert.Contains(t, string(refused.GetBody()), "body_mode is "+map[bool]string{true: m.request.String(), false: m.response.String()}[m.request != modes.ProcessingMode_BUFFERED])
		assert.Equal(t, intake.Rejected, f.ended(1).Outcome)
	}
	f := newFixture(t, 1, nil)
	e := f.envoy()
	first := duplexMode.headers(true)
	first.ProtocolConfig = nil
	assert.NotEmpty(t, placedAt(t, e.exchange(first)), "the default mode is the protocol's")
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
				before := len(f.records.All())
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
		assert.Equal(t, address(i), placedAt(t, e.exchange(first)))
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
		f.stop()
		assert.Empty(t, f.records.All(), name)
	}
}
