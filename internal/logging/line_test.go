package logging

import (
	"errors"
	"math/rand/v2"
	"strconv"
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
	"example.org/pilotfish/pkg/selection"
)

// zapJob is a job as zap's encoder writes it, with which a line is compared.
type zapJob record.Job

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (r *zapJob) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("id", r.ID)
	enc.AddString("session", r.Facts.Session.String())
	enc.AddString("project", r.Facts.Project.String())
	enc.AddString("priority", r.Facts.Priority.String())
	enc.AddString("read", r.Read.String())
	enc.AddString("outcome", r.Outcome.String())
	enc.AddInt("status", r.Status)
	zap.Objects("attempts", zapAttempts(r.Attempts)).AddTo(enc)
	enc.AddFloat64("queue_seconds", r.Queued.Seconds())
	enc.AddFloat64("ttfb_seconds", r.TTFB.Seconds())
	enc.AddFloat64("total_seconds", r.Total.Seconds())
	enc.AddInt64("body_bytes", r.Body)
	enc.AddInt64("answer_bytes", r.Bytes)
	enc.AddString("answer", r.Completeness.String())
	if r.Unread != "" {
		enc.AddString("unread", r.Unread)
	}
	if r.Reason != "" {
		enc.AddString("reason", r.Reason)
	}
	if r.Unframed {
		enc.AddBool("unframed", true)
	}
	if r.Unkept {
		enc.AddBool("replay_disabled", true)
	}
	if r.RetryRefused {
		enc.AddBool("retry_refused", true)
	}
	if r.Err != nil {
		enc.AddString("error", r.Err.Error())
	}
	return nil
}

type zapAttempt record.Attempt

func zapAttempts(of []record.Attempt) (all []*zapAttempt) {
	for i := range of {
		all = append(all, (*zapAttempt)(&of[i]))
	}
	return all
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (a *zapAttempt) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("upstream", a.Upstream)
	enc.AddString("outcome", a.Outcome.String())
	enc.AddString("cache", a.Cache.String())
	enc.AddByteString("why", (*record.Attempt)(a).AppendWhy(nil))
	enc.AddFloat64("seconds", (a.End - a.Start).Seconds())
	if h := a.Hint; h != nil {
		if h.Waited >= 0 {
			enc.AddFloat64("upstream_wait_seconds", h.Waited.Seconds())
		}
		if h.Fetched >= 0 {
			enc.AddFloat64("upstream_fetch_seconds", h.Fetched.Seconds())
		}
		if h.Known {
			enc.AddBool("upstream_cached", h.Cached)
		}
	}
	if a.Repeated {
		enc.AddBool("repeated", true)
	}
	if a.Err != nil {
		enc.AddString("error", a.Err.Error())
	}
	return nil
}

// oddTexts need escapes in JSON, or look as if they did.
var oddTexts = []string{
	"", "plain", `"`, `\`, "/", "<>&", "'", "\n", "\r", "\t", "\b", "\f", "\v", "\x00", "\x1f", " ", "\x7f", "\x80", "\u00a0",
	"é", "漢字", "😀", "\u2028", "\u2029", "\ufffd", "\ufeff", "\xff", "\xc3", "\xed\xa0\x80", "\xef\xbf", "\xf4\x90\x80\x80", "\xc0\xaf",
}

// draw makes records of all kinds.
type draw struct{ *rand.Rand }

func (d draw) text() (s string) {
	for range d.IntN(6) {
		s += oddTexts[d.IntN(len(oddTexts))]
	}
	return s
}

func (d draw) err() error {
	if d.IntN(2) == 0 {
		return nil
	}
	return errors.New(d.text())
}

// duration is 0, or anything up to weeks; it may be negative, as that of an attempt
// without an end.
func (d draw) duration() time.Duration {
	return time.Duration(d.Int64() >> (10 + d.IntN(54)) * int64(d.IntN(3)-1))
}

func (d draw) attempt() record.Attempt {
	a := record.Attempt{
		Upstream: d.text(), Outcome: pool.Outcome(d.IntN(pool.Outcomes)), Cache: selection.Cache(d.IntN(int(selection.Cached) + 1)),
		Cost:     selection.Cost{Total: d.NormFloat64(), Wait: d.ExpFloat64() * 1e4, Fetch: d.Float64() / 1000},
		RunnerUp: d.text(), RunnerUpCost: d.Float64(), Panic: d.IntN(2) == 0,
		Start: d.duration(), End: d.duration(), Repeated: d.IntN(2) == 0, Err: d.err(),
	}
	if d.IntN(2) == 0 {
		a.Hint = &pool.Hint{Waited: d.duration(), Fetched: d.duration(), Known: d.IntN(2) == 0, Cached: d.IntN(2) == 0}
	}
	return a
}

func (d draw) job() *record.Job {
	r := &record.Job{
		ID:    d.text(),
		Facts: intake.Facts{Session: intake.NewText(d.text()), Project: intake.NewText(d.text()), Priority: selection.Priority(d.IntN(selection.Priorities))},
		Read:  intake.Reading(d.IntN(intake.Readings)), Unread: d.text(), Body: d.Int64() >> d.IntN(64) * int64(d.IntN(3)-1), Bytes: d.Int64() >> d.IntN(64),
		Unkept: d.IntN(2) == 0, Queued: d.duration(), TTFB: d.duration(), Total: d.duration(), Status: d.IntN(1000), Reason: d.text(),
		Err: d.err(), Outcome: intake.Outcome(d.IntN(intake.Outcomes)), Completeness: intake.Completeness(d.IntN(intake.Completenesses)), Unframed: d.IntN(2) == 0,
	}
	for range d.IntN(4) {
		r.Attempts = append(r.Attempts, d.attempt())
	}
	return r
}

// A line has the bytes that zap's encoder would write.
func TestLinesAreAsZapWritesThem(t *testing.T) {
	d := draw{rand.New(rand.NewPCG(1, 2))}
	enc := zapcore.NewJSONEncoder(encoding())
	var c clock
	for range 5000 {
		r := d.job()
		now := time.Unix(1_800_000_000+d.Int64N(3), d.Int64N(1e9))
		level := []zapcore.Level{zap.InfoLevel, zap.WarnLevel}[d.IntN(2)]
		want, err := enc.EncodeEntry(zapcore.Entry{Level: level, Time: now, Message: "job"}, []zap.Field{zap.Inline((*zapJob)(r))})
		require.NoError(t, err)
		require.Equal(t, want.String(), string(line(nil).job(level, &c, now, r)))
		want.Free()
	}
}

// Each odd text by itself, and cut at each byte.
func TestOddTexts(t *testing.T) {
	enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{})
	for _, odd := range oddTexts {
		for cut := range len(odd) + 1 {
			text := "a" + odd[:cut] + "b"
			want, err := enc.EncodeEntry(zapcore.Entry{}, []zap.Field{zap.String("k", text)})
			require.NoError(t, err)
			assert.Equal(t, want.String(), string(line("{").text("k", text))+"}\n", strconv.QuoteToASCII(text))
		}
	}
}

// Each byte is seen wherever it stands, whatever stands around it.
func TestPlain(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c < 0x80 && c != '"' && c != '\\'
		for _, around := range []string{" ", "#", "!", "]", "[", "~", "\x7f"} {
			for length := 1; length <= 17; length++ {
				for at := range length {
					text := []byte(strings.Repeat(around, length))
					text[at] = byte(c)
					require.Equal(t, want, plain(text), "%q", text)
				}
			}
		}
	}
}

// Times are as zap writes them on both sides of a second, below which they are put together
// from digits.
func TestSeconds(t *testing.T) {
	for _, d := range []time.Duration{
		-time.Second, -1, 0, 1, 10, 999, time.Microsecond, 1_000_001, 20 * time.Millisecond, 100 * time.Millisecond, 123_456_789, 500_000_000,
		999_999_999, time.Second, time.Second + 1, 1_100_000_000, 10 * time.Second, 1<<53 + 1,
	} {
		assert.Equal(t, `{"k":`+strconv.FormatFloat(d.Seconds(), 'f', -1, 64), string(line("{").seconds("k", d)))
	}
	for n := range 100_000 {
		d := time.Duration(n * 9_999) // of all lengths below a second
		require.Equal(t, `{"k":`+strconv.FormatFloat(d.Seconds(), 'f', -1, 64), string(line("{").seconds("k", d)))
	}
}

// The text of an instant is right also where another second, or another zone, was
// asked for before.
func TestClock(t *testing.T) {
	var c clock
	begin := time.Date(2026, 3, 29, 0, 59, 59, 999_999_999, time.UTC)
	berlin := time.FixedZone("", 3600)
	for _, at := range []time.Time{begin, begin.Add(1), begin, begin.Add(time.Millisecond), begin.Add(time.Hour), begin.In(berlin).Add(2 * time.Hour)} {
		assert.Equal(t, at.Format("2006-01-02T15:04:05.000Z0700"), string(c.append(nil, at)))
	}
}
