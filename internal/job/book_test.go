package job

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/balancing"
)

// desk is a Config with n upstreams, and the records that its sink received.
type desk struct {
	Config
	balancer *balancer.Balancer
	records  balancing.Records
}

func newDesk(t *testing.T, n int) *desk {
	t.Helper()
	reader, err := intake.NewReader(intake.Default())
	require.NoError(t, err)
	x := &desk{}
	x.balancer, _ = balancing.New(t, balancing.Setup{}, balancing.Addresses(n)...)
	x.Config = Config{
		Reader: reader, Budget: intake.NewBudget(1<<20, 16<<20), MaxBody: 1 << 20, Claimer: x.balancer,
		Hint: func(h http.Header, now time.Time) (pool.Hint, error) {
			if h.Get("Load") == "" {
				return pool.Hint{}, errTest
			}
			return pool.Hint{At: now, Waited: -1}, nil
		},
		Sinks: []func(*record.Job){x.records.Add},
	}
	require.NoError(t, x.Check())
	return x
}

// open returns the book of a job that has been read and accepted.
func (x *desk) open(t *testing.T) *Book {
	t.Helper()
	b := &Book{}
	b.Open(&x.Config, time.Now(), intake.Head{Method: "POST", Path: "/jobs", Header: http.Header{"X-Request-Id": {"7"}}}, "here:1")
	require.NoError(t, b.Describe([]byte(`{"project_id":1,"priority":"high","timeouts":{"queue_seconds":3,"evaluate_seconds":4}}`), true))
	b.Begin(dispatch.Request{})
	return b
}

// A job is accepted with its facts, and counted for another project if a limit's key says so.
func TestAcceptedRequest(t *testing.T) {
	b := newDesk(t, 1).open(t)
	f := &b.Record.Facts
	want := dispatch.Request{
		ID: "7", Facts: f, Project: f.Key, Name: "1", Priority: selection.High, Arrived: b.Record.Arrived,
		Queue: 3 * time.Second, Evaluate: 4 * time.Second,
	}
	assert.Equal(t, want, b.Job.Request)
	f.Bytes, f.Stream, f.LengthKey = 5, time.Second, 6
	b.Begin(dispatch.Request{Project: 9, Name: "nine"})
	want.Project, want.Name, want.DataBytes, want.Stream, want.LengthKey = 9, "nine", 5, time.Second, 6
	want.Data = &intake.Parts{Parts: []intake.Part{{Key: f.Key}}, Set: true}
	assert.Equal(t, want, b.Job.Request)
	f.Data = &intake.Parts{}
	want.Data = f.Data
	b.Begin(dispatch.Request{Project: 9, Name: "nine"})
	assert.Same(t, f.Data, b.Job.Data)
	f.Prefetch, f.Priority = true, selection.Low
	b.Begin(dispatch.Request{Fallbacks: true, Withdraw: withdrawn{}})
	assert.True(t, b.Job.Prefetch)
	assert.Equal(t, []any{selection.High, false, nil}, []any{b.Job.Priority, b.Job.Fallbacks, b.Job.Withdraw})
}

// A prompt has the parts of its tokens if they are known; the blocks of its text if not, or if the body is incomplete.
func TestTokensOfAPrompt(t *testing.T) {
	x := newDesk(t, 1)
	settings := intake.Default()
	settings.Project = intake.Places{{Pointer: "/prompt", Blocks: 4}}
	var err error
	x.Reader, err = intake.NewReader(settings)
	require.NoError(t, err)
	tokens := &intake.Parts{Parts: []intake.Part{{Key: 9, Bytes: 4}}}
	x.Prompt = func(body []byte) *intake.Parts {
		if strings.Contains(string(body), "tokens") {
			return tokens
		}
		return nil
	}
	data := func(body string, whole bool) *intake.Parts {
		b := &Book{}
		b.Open(&x.Config, time.Now(), intake.Head{Method: "POST", Path: "/jobs", Header: http.Header{}}, "here:1")
		require.NoError(t, b.Describe([]byte(body), whole))
		return b.Record.Facts.Data
	}
	assert.Same(t, tokens, data(`{"prompt":"tokens"}`, true))
	assert.NotSame(t, tokens, data(`{"prompt":"tokens"}`, false))
	assert.Len(t, data(`{"prompt":"12345678"}`, true).Parts, 2)
	assert.Nil(t, data(`{"other":"tokens"}`, true), "no prompt")
}

type withdrawn struct{}

func (withdrawn) Withdraw() bool { return true }

var (
	errTest = errors.New("a reason")
	loaded  = http.Header{"Load": {"1"}}
)

// Each way to end a job ends its lease, and passes one record to the sinks.
func TestEndings(t *testing.T) {
	type ended struct {
		Outcome      intake.Outcome
		Attempt      pool.Outcome
		Completeness intake.Completeness
		Status       int
		Err          string
	}
	for name, c := range map[string]struct {
		end  func(b *Book)
		want ended
	}{
		"whole":                  {func(b *Book) { b.Head(time.Now(), 200, nil); b.End(pool.Answered, nil) }, ended{intake.Answered, pool.Answered, intake.Complete, 200, ""}},
		"refused":                {func(b *Book) { b.Head(time.Now(), 404, nil); b.End(pool.Answered, nil) }, ended{intake.Answered, pool.Answered, intake.Complete, 404, ""}},
		"failed":                 {func(b *Book) { b.Head(time.Now(), 500, nil); b.End(pool.Answered, nil) }, ended{intake.Failed, pool.Failed, intake.Complete, 500, ""}},
		"not started":            {func(b *Book) { b.Head(time.Now(), 503, http.Header{"Retry-After": {"1"}}); b.End(pool.Answered, nil) }, ended{intake.Failed, pool.NotStarted, intake.Complete, 503, ""}},
		"cut":                    {func(b *Book) { b.Head(time.Now(), 200, nil); b.End(pool.Truncated, errTest) }, ended{intake.Truncated, pool.Truncated, intake.Partial, 200, "a reason"}},
		"left":                   {func(b *Book) { b.Head(time.Now(), 200, nil); b.End(pool.Gone, errTest) }, ended{intake.Gone, pool.Gone, intake.Partial, 200, "a reason"}},
		"none":                   {func(b *Book) { b.End(pool.Refused, errTest) }, ended{intake.NoAnswer, pool.Refused, intake.Absent, 0, "a reason"}},
		"gone":                   {func(b *Book) { b.Refuse(record.ErrGone) }, ended{intake.Gone, pool.Gone, intake.Absent, 499, record.ErrGone.Error()}},
		"late":                   {func(b *Book) { b.Refuse(record.ErrDeadline) }, ended{intake.Deadline, pool.Gone, intake.Absent, 504, record.ErrDeadline.Error()}},
		"a panic":                {func(*Book) {}, ended{intake.Broken, pool.Gone, intake.Absent, 0, ""}},
		"a panic after the head": {func(b *Book) { b.Head(time.Now(), 200, nil) }, ended{intake.Broken, pool.Gone, intake.Partial, 200, ""}},
	} {
		x := newDesk(t, 1)
		b := x.open(t)
		_, err := b.Claim(t.Context(), time.Now())
		require.NoError(t, err)
		assert.Equal(t, []dispatch.ProjectLoad{{Name: "1", InFlight: 1}}, x.balancer.Projects(time.Now(), 9))
		c.end(b)
		b.Close()
		balancing.RequireIdle(t, x.balancer)
		r := x.records.Wait(t, 1)[0]
		require.Len(t, r.Attempts, 1)
		assert.Equal(t, c.want, ended{r.Outcome, r.Attempts[0].Outcome, r.Completeness, r.Status, r.Err}, name)
		assert.Equal(t, []string{"7", "POST", "/jobs", "here:1"}, []string{r.ID, r.Method, r.Path, r.Peer})
		assert.Equal(t, selection.High, r.Facts.Priority)
		assert.Equal(t, c.want.Completeness != intake.Absent, r.Attempts[0].FirstByte >= 0, name)
	}
}

// Times count from the job's arrival, the time to an attempt's first byte from the attempt's
// start. Only the last attempt has a response.
func TestTheBookOfTwoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newDesk(t, 2)
		var failed, withoutHint []string
		x.AttemptFailed = func(a *record.Attempt) { failed = append(failed, a.Upstream+": "+a.Err) }
		x.NoHint = func(address string, err error) { withoutHint = append(withoutHint, address+": "+err.Error()) }
		b := x.open(t)
		_, err := b.Claim(t.Context(), time.Now())
		require.NoError(t, err)
		time.Sleep(time.Second)
		b.Hint(time.Now(), loaded)
		next := b.Failed(dispatch.Failure{Outcome: pool.NotStarted, Progress: dispatch.Responded, Repeatable: true}, errTest)
		require.True(t, next.Again)
		assert.Len(t, failed, 1, "before the job ends")
		assert.Nil(t, b.Lease)
		balancing.RequireIdle(t, x.balancer)
		_, err = b.Claim(t.Context(), time.Now())
		require.NoError(t, err)
		time.Sleep(time.Second)
		b.Trailer(loaded) // no response has started
		b.Head(time.Now(), 200, nil)
		time.Sleep(time.Second)
		b.Trailer(loaded)
		b.End(pool.Answered, nil)
		b.Close()
		balancing.RequireIdle(t, x.balancer)
		r := x.records.All()[0]
		require.Len(t, r.Attempts, 2)
		first, second := r.Attempts[0], r.Attempts[1]
		assert.NotEqual(t, first.Upstream, second.Upstream)
		assert.Equal(t, []any{pool.NotStarted, time.Duration(-1), "a reason"}, []any{first.Outcome, first.FirstByte, first.Err})
		assert.Equal(t, []any{pool.Answered, time.Second, time.Second, 3 * time.Second}, []any{second.Outcome, second.FirstByte, second.Start, second.End})
		assert.Equal(t, []time.Duration{2 * time.Second, 3 * time.Second}, []time.Duration{r.TTFB, r.Total})
		require.NotNil(t, first.Hint)
		require.NotNil(t, second.Hint, "the trailer has what the header has not")
		assert.Equal(t, []string{first.Upstream + ": a reason"}, failed)
		assert.Equal(t, []string{second.Upstream + ": a reason"}, withoutHint, "each header is parsed once")
	})
}

// The record reports if only the retry budget prevented a retry. The budget allows three retries a
// second.
func TestRetriesBeyondTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newDesk(t, 2)
		for n := range 4 {
			b := x.open(t)
			_, err := b.Claim(t.Context(), time.Now())
			require.NoError(t, err)
			next := b.Failed(dispatch.Failure{Outcome: pool.NoAnswer, Progress: dispatch.Begun, Repeatable: true}, errTest)
			assert.Equal(t, n < 3, next.Again)
			assert.Equal(t, n == 3, b.Record.RetryRefused)
			b.Close()
		}
	})
}

// A waiting job ends when its submitter disconnects, when its timeout is reached, or when the
// process shuts down.
func TestClaimsThatFail(t *testing.T) {
	for want, cause := range map[error]error{record.ErrGone: context.Canceled, record.ErrShutdown: record.ErrShutdown, dispatch.ErrWaited: nil} {
		synctest.Test(t, func(t *testing.T) {
			x := newDesk(t, 0)
			b := x.open(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if cause != nil {
				cancel(cause)
			}
			_, err := b.Claim(ctx, time.Now())
			require.ErrorIs(t, err, want)
			assert.Nil(t, b.Lease)
			b.Refuse(err)
			b.Close()
			balancing.RequireIdle(t, x.balancer)
			r := x.records.All()[0]
			assert.Empty(t, r.Attempts)
			assert.Equal(t, r.Total, r.Queued)
		})
	}
}

// While no upstream is known, a job that is shed after its wait, or because the queue is full, gets the reason.
func TestShedJobsNameTheReasonOfTheWait(t *testing.T) {
	for want, r := range map[error]dispatch.Request{dispatch.ErrWaited: {}, dispatch.ErrFull: {Bytes: 1 << 40}} {
		synctest.Test(t, func(t *testing.T) {
			x := newDesk(t, 0)
			why := "the list is empty"
			x.NoUpstream = func() string { return why }
			for range 2 {
				b := x.open(t)
				b.Begin(r)
				_, err := b.Claim(t.Context(), time.Now())
				require.ErrorIs(t, err, want)
				assert.Equal(t, why != "", strings.HasSuffix(err.Error(), ": the list is empty"), "%v", err)
				b.Refuse(err)
				b.Close()
				why = "" // as if upstreams were known
			}
			balancing.RequireIdle(t, x.balancer)
		})
	}
}

// Headers are added to the given header, and replace nothing.
func TestHeaders(t *testing.T) {
	x := newDesk(t, 1)
	x.AskLoad = true
	x.Trace = func(_ time.Time, h http.Header) any { h["Traceparent"] = []string{"ours"}; return true }
	x.ExplainHeaders = true
	b := x.open(t)
	defer b.Close()
	own, to := http.Header{}, http.Header{}
	b.Request(own, to)
	assert.Equal(t, http.Header{"X-Request-Id": {"7"}, "Endpoint-Load-Metrics-Format": {"text"}, "Traceparent": {"ours"}}, to)
	to = http.Header{}
	b.Request(http.Header{"X-Request-Id": {"theirs"}, "Endpoint-Load-Metrics-Format": {"json"}}, to)
	assert.Equal(t, http.Header{"Traceparent": {"ours"}}, to)
	_, err := b.Claim(t.Context(), time.Now())
	require.NoError(t, err)
	to = http.Header{}
	b.Response(nil, to)
	assert.Equal(t, "10.0.0.0:9000", to.Get("Pilotfish-Upstream"))
	assert.NotContains(t, to, "X-Request-Id")
	x.RequestID = true
	b.Response(nil, to)
	assert.Equal(t, "7", to.Get("X-Request-Id"))
}

// Each attempt's header has the duration expected at its upstream, unless the submitter has set the header.
func TestExpect(t *testing.T) {
	x := newDesk(t, 1)
	b := x.open(t)
	defer b.Close()
	_, err := b.Claim(t.Context(), time.Now())
	require.NoError(t, err)
	theirs := http.Header{}
	expect := func(name string, seconds float64) http.Header {
		x.Job.ExpectedHeader, b.Lease.Expected = name, seconds
		b.Expect(theirs, theirs)
		return theirs
	}
	assert.Empty(t, expect("Job-Expected", 0), "not known")
	assert.Empty(t, expect("", 2))
	assert.Equal(t, "2.314", expect("Job-Expected", 2.31449).Get("Job-Expected"))
	assert.Equal(t, "3.000", expect("Job-Expected", 3).Get("Job-Expected"), "the next place")
	b.expected[0], theirs["Job-Expected"] = "", []string{"3.000"}
	assert.Equal(t, "3.000", expect("Job-Expected", 4).Get("Job-Expected"), "the submitter's own")
}

func TestConfig(t *testing.T) {
	assert.ErrorContains(t, (&Config{}).Check(), "required")
	x := newDesk(t, 1)
	x.MaxBody = 0
	assert.ErrorContains(t, x.Check(), "MaxBody")
}

// The end of a response is kept for jobs whose project has blocks, however the response is
// split into pieces.
func TestTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		b := &Book{}
		b.Wrote([]byte("nothing"), 7)
		assert.Nil(t, b.tail)
		b.Record.Facts.Data = &intake.Parts{Set: true}
		b.Wrote([]byte("nothing"), 7)
		assert.Nil(t, b.tail)
		b.Record.Facts.Data = &intake.Parts{}
		var all []byte
		for range rng.IntN(6) {
			piece := bytes.Repeat([]byte(strings.Repeat(string(rune('a'+rng.IntN(26))), 7)), rng.IntN(300))
			all = append(all, piece...)
			b.Wrote(piece, len(piece))
		}
		require.Equal(t, string(all[max(0, len(all)-tailBytes):]), string(b.tail))
		assert.LessOrEqual(t, cap(b.tail), tailBytes)
		assert.EqualValues(t, 14+len(all), b.Record.Bytes)
	}
}
