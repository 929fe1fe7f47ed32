package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// ended is the time at which the jobs of these tests end.
var ended = time.Unix(1_800_000_000, 123_456_789)

func write(log *Log, set Settings, r *record.Job) {
	r.Arrived = ended.Add(-r.Total)
	log.Job(set, r)
}

// read returns a log, and a function that returns the lines since its last call.
func read(t *testing.T) (*Log, func() []map[string]any) {
	var text bytes.Buffer
	log, err := New(&text, "debug")
	require.NoError(t, err)
	return log, func() (lines []map[string]any) {
		require.NoError(t, log.Sync())
		for from := json.NewDecoder(&text); from.More(); {
			var fields map[string]any
			require.NoError(t, from.Decode(&fields))
			lines = append(lines, fields)
		}
		text.Reset()
		return lines
	}
}

func TestWhichJobsAreLogged(t *testing.T) {
	records := []*record.Job{
		{Outcome: intake.Answered, Total: time.Second},
		{Outcome: intake.Answered, Total: time.Hour},
		{Outcome: intake.Gone, Total: time.Second},
		{Outcome: intake.NoAnswer, Total: time.Second},
	}
	for jobs, want := range map[string][]string{
		allJobs:    {"info answered 1", "info answered 3600", "info gone 1", "warn no_response 1"},
		failedJobs: {"warn no_response 1"},
		noJobs:     nil,
		"of warn":  {"warn no_response 1"}, // a job's line also needs the level
	} {
		log, lines := read(t)
		set := Default()
		if set.Jobs = jobs; jobs == "of warn" {
			set.Jobs = allJobs
			log.Level.SetLevel(zap.WarnLevel)
		}
		var got []string
		for _, r := range records {
			write(log, set, r)
			for _, fields := range lines() {
				got = append(got, fmt.Sprint(fields["level"], " ", fields["outcome"], " ", fields["total_seconds"]))
			}
		}
		assert.Equal(t, want, got, jobs)
	}
}

// Successful jobs are sampled evenly, and all failed jobs are logged.
func TestAShareOfTheJobsIsLogged(t *testing.T) {
	log, lines := read(t)
	set := Settings{Jobs: allJobs, Share: 0.1}
	for i := range 1000 {
		write(log, set, &record.Job{Outcome: intake.Answered})
		assert.Len(t, lines(), (i+1)/10-i/10)
	}
	for range 10 {
		write(log, set, &record.Job{Outcome: intake.Truncated})
	}
	assert.Len(t, lines(), 10)
	set.Share = 0
	write(log, set, &record.Job{Outcome: intake.Answered})
	assert.Empty(t, lines())
}

// The line of a job has all set fields of its record and no others.
func TestTheLineOfAJob(t *testing.T) {
	log, lines := read(t)
	line := func(r *record.Job) map[string]any {
		write(log, Default(), r)
		return lines()[0]
	}
	usual := line(&record.Job{ID: "1", Status: 200, Completeness: intake.Complete})
	assert.Equal(t, map[string]any{
		"level": "info", "ts": ended.Format(time.RFC3339Nano), "msg": "job",
		"id": "1", "session": "", "project": "", "priority": "low", "read": "unread", "outcome": "answered", "status": 200.0,
		"attempts": []any{}, "queue_seconds": 0.0, "ttfb_seconds": 0.0, "total_seconds": 0.0,
		"body_bytes": 0.0, "response_bytes": 0.0, "response": "complete",
	}, usual)
	const failed = "connection reset"
	whole := line(&record.Job{
		Method: "POST", Path: "/jobs/1\n" + strings.Repeat("x", 1000), Peer: "127.0.0.1:4711",
		Facts: intake.Facts{
			Session: "s", Project: "p", Priority: selection.High,
			Queue: 15 * time.Second, Evaluate: time.Minute, Stream: time.Hour,
		},
		Queued: time.Second, TTFB: 2 * time.Second, Total: 3 * time.Second, Body: 4, Bytes: 5, Completeness: intake.Partial,
		Unread: "encoded", Reason: "no-response", Unframed: true, Unkept: true, RetryRefused: true, Err: failed, Outcome: intake.NoAnswer,
		Attempts: []record.Attempt{{
			Upstream: "a:1", Outcome: pool.Refused, Cache: selection.Cached, Start: time.Second, End: 3 * time.Second, Err: failed,
			Hint: &pool.Hint{Waited: -1, Fetched: 2 * time.Second, Known: true},
		}},
	})
	for key, want := range map[string]any{
		"method": "POST", "path": `/jobs/1\n` + strings.Repeat("x", 500) + "...", "peer": "127.0.0.1:4711",
		"session": "s", "project": "p", "priority": "high", "queue_seconds": 1.0, "ttfb_seconds": 2.0, "total_seconds": 3.0,
		"queue_timeout_seconds": 15.0, "first_byte_timeout_seconds": 60.0, "stream_timeout_seconds": 3600.0,
		"body_bytes": 4.0, "response_bytes": 5.0, "unread": "encoded", "reason": "no-response", "unframed": true,
		"replay_disabled": true, "retry_refused": true, "error": "connection reset",
		"attempts": []any{map[string]any{
			"upstream": "a:1", "outcome": "refused", "cache": "cached", "seconds": 2.0, "error": "connection reset",
			"upstream_fetch_seconds": 2.0, "upstream_cached": false, // the upstream did not report the wait
			"why": "cost=0.000 wait=0.000 fetch=0.000 placement=0.000 stop=0.000",
		}},
	} {
		assert.Equal(t, want, whole[key], key)
	}
}

// Log lines of libraries become lines of this log, and their text becomes no field.
func TestLibraries(t *testing.T) {
	old, flags, to := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() { slog.SetDefault(old); log.SetFlags(flags); log.SetOutput(to) })
	l, lines := read(t)
	l.CaptureLibraries()
	log.Print("http: unsolicited response")
	slog.With("a", 1).WithGroup("g").Warn("invalid limit", "msg", "forged", "level", "debug")
	slog.Error("failed")
	slog.Info("started")
	got := lines()
	want := []map[string]any{
		{"level": "warn", "msg": "http: unsolicited response"},
		{"level": "warn", "msg": "invalid limit", "details": "a=1 g.msg=forged g.level=debug"},
		{"level": "error", "msg": "failed"}, {"level": "info", "msg": "started"},
	}
	for _, line := range got {
		delete(line, "ts")
	}
	assert.Equal(t, want, got)
}

// Every line has a maximum length, regardless of who chose its text.
func TestLinesAreBounded(t *testing.T) {
	var out bytes.Buffer
	l, err := New(&out, "info")
	require.NoError(t, err)
	long := strings.Repeat("é", 1000)
	l.With(zap.String("a", long)).Info(long, zap.Error(errors.New(long)), zap.NamedError("none", nil),
		zap.Strings("upstreams", slices.Repeat([]string{"10.0.0.1:80"}, 10_000)))
	require.NoError(t, l.Sync())
	assert.Less(t, out.Len(), 8<<10)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	assert.Equal(t, strings.Repeat("é", 254)+"...", line["error"])
	assert.Len(t, line["upstreams"], 100)
	assert.EqualValues(t, 10_000, line["upstreams_total"])
}

// drawn returns a job with random texts and times.
func drawn(rng *rand.Rand) *record.Job {
	text := func() string {
		b := make([]byte, rng.IntN(8))
		for i := range b {
			b[i] = byte(rng.UintN(256))
			if rng.IntN(2) == 0 {
				b[i] = "a\"\\<\x7f \n{["[rng.IntN(9)]
			}
		}
		return string(b)
	}
	length := func() time.Duration { return time.Duration(math.Exp(rng.Float64()*50) - 2) }
	r := &record.Job{
		ID: text(), Arrived: ended.Add(-length()), Method: text(), Path: text(), Peer: text(), Status: rng.IntN(1000),
		Facts:  intake.Facts{Session: text(), Project: text(), Priority: selection.Priority(rng.IntN(2)), Queue: length(), Prefetch: rng.IntN(2) == 0},
		Queued: length(), TTFB: length(), Total: length(), Body: rng.Int64() - 1, Completeness: intake.Complete, Err: text(),
	}
	for range rng.IntN(3) {
		r.Attempts = append(r.Attempts, record.Attempt{
			Upstream: text(), Start: length(), End: length(), Hint: &pool.Hint{Waited: length(), Fetched: -1, Known: rng.IntN(2) == 0, Cached: true}, Err: text(),
		})
		r.Attempts[0].Cost.Total = rng.NormFloat64()
	}
	return r
}

// tokens are the tokens of a JSON text, numbers with all their digits.
func tokens(t *testing.T, text string) (all []json.Token) {
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), "%q", text)
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	for in.More() {
		token, err := in.Token()
		require.NoError(t, err)
		all = append(all, token)
	}
	return all
}

// A line has the fields that zap's encoder writes, in the same order and with the same values.
func TestLinesAsByZap(t *testing.T) {
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	model, rng, l := zapcore.NewJSONEncoder(cfg), rand.New(rand.NewPCG(5, 3)), new(line)
	for range 20_000 {
		r := drawn(rng)
		want, err := model.EncodeEntry(zapcore.Entry{Level: zap.WarnLevel, Time: r.Ended(), Message: "job"}, []zap.Field{zap.Inline(r)})
		require.NoError(t, err)
		l.encode(zap.WarnLevel, r)
		require.Equal(t, tokens(t, want.String()), tokens(t, string(l.text)))
		want.Free()
	}
}

// The line of an ordinary job allocates the text of the reason, and nothing else.
func TestWhatALineAllocates(t *testing.T) {
	r := &record.Job{ID: "7", Arrived: ended, Total: time.Millisecond, Facts: intake.Facts{Project: "1"}, Attempts: []record.Attempt{{Upstream: "a:1"}}}
	l := new(line)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { l.encode(zap.InfoLevel, r) }), 1.0, "the text why")
}

func TestBodiesAreWrittenForTheOwnerAndBounded(t *testing.T) {
	require.Nil(t, NewBodies(Default(), nil), "they are off by default")
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, bodiesName)
	var faults []error
	open := func(size int) *Bodies {
		set := Default()
		set.Bodies, set.BodiesSize = dir, settings.Size(size)
		return NewBodies(set, func(err error) { faults = append(faults, err) })
	}
	b := open(300)
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"secret"}}
	for range 2 {
		b.Record(&record.Job{ID: "a", Method: "POST", Path: "/v1/jobs"}, header, []byte("\x00{}"))
		require.NoError(t, b.Sync())
	}
	require.Empty(t, faults)
	b.Record(&record.Job{ID: "b"}, header, make([]byte, 200))
	require.NoError(t, b.Sync())
	require.Len(t, faults, 1)
	assert.ErrorContains(t, faults[0], path+" has reached log.bodies_size, 300 bytes")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	require.Len(t, lines, 2)
	var got Body
	require.NoError(t, json.Unmarshal(lines[1], &got))
	assert.Equal(t, Body{ID: "a", Method: "POST", Path: "/v1/jobs", Type: "application/json", Body: []byte("\x00{}")}, got)
	assert.NotContains(t, string(text), "secret")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	again := open(300)
	again.Record(&record.Job{ID: "c"}, nil, make([]byte, 100))
	require.NoError(t, again.Sync())
	assert.Len(t, faults, 2, "what was there counts")
	dir = filepath.Join(path, "x") // below a file
	blocked := open(300)
	blocked.Record(&record.Job{}, nil, nil)
	require.NoError(t, blocked.Sync())
	assert.True(t, len(faults) == 3 && !errors.Is(faults[2], os.ErrNotExist), "%v", faults)
}
