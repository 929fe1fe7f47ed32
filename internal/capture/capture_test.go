package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// capture is one that writes to a file of its own.
func capture(t *testing.T, change func(*Config)) *Capture {
	t.Helper()
	cfg := Config{Settings: Default(), Failed: func(err error) { t.Error(err) }}
	cfg.Path = filepath.Join(t.TempDir(), "jobs.jsonl")
	change(&cfg)
	c, err := New(cfg)
	require.NoError(t, err)
	return c
}

// finish writes what was added.
func (c *Capture) finish() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Run(ctx)
}

// job is one that a session sent so many seconds after the start, and that took a second.
func (c *Capture) job(session string, at float64) *record.Job {
	return &record.Job{
		Arrived: c.start.Add(time.Duration(at * 1e9)), Read: intake.Full,
		Facts:   intake.Facts{Project: intake.NewText("12345"), Session: intake.NewText(session), Priority: selection.High, Stream: time.Minute},
		Outcome: intake.Answered, Completeness: intake.Complete, TTFB: 500 * time.Millisecond, Total: time.Second, Queued: time.Millisecond,
		Attempts: []record.Attempt{
			{Upstream: "a:1", Outcome: pool.Refused, End: time.Millisecond, Err: errors.New("secret")},
			{Upstream: "b:1", Outcome: pool.Answered, Cache: selection.Cached, Start: time.Millisecond, End: time.Second,
				Hint: &pool.Hint{Waited: 100 * time.Millisecond, Fetched: 200 * time.Millisecond}},
		},
	}
}

func read(t *testing.T, path string) []trace.Job {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	jobs, err := trace.ReadCapture(f, path)
	require.NoError(t, err)
	return jobs
}

func TestALine(t *testing.T) {
	c := capture(t, func(*Config) {})
	c.Add(c.job("secret", 2.5))
	cut := c.job("", 3)
	cut.Outcome, cut.Completeness = intake.Truncated, intake.Partial
	c.Add(cut)
	c.Add(&record.Job{Arrived: c.start, Read: intake.NoProject, Outcome: intake.Shed})
	c.Add(&record.Job{Arrived: c.start, Read: intake.Full, Outcome: intake.Rejected})
	c.Add(&record.Job{Arrived: c.start, Read: intake.Full, Outcome: intake.TooLarge})
	c.Add(&record.Job{Arrived: c.start, Read: intake.Unread, Outcome: intake.Answered})
	c.finish()
	text, err := os.ReadFile(c.settings.Load().Path)
	require.NoError(t, err)
	assert.Equal(t, `{"offset":2.5,"project":12345,"priority":"high","kind":"process","load_s":0.2,"timeouts":{"stream":60},"after":null,`+
		`"upstream":"b:1","outcome":"answered","cache":"cached","queue_s":0.001,"wait_s":0.1,"ttfb_s":0.5,"ttlb_s":1,`+
		`"attempts":[{"upstream":"a:1","outcome":"refused","start_s":0,"end_s":0.001},{"upstream":"b:1","outcome":"answered","start_s":0.001,"end_s":1}]}`+"\n"+
		`{"offset":3,"project":12345,"priority":"high","kind":"process","load_s":0.2,"timeouts":{"stream":60},"after":null,`+
		`"upstream":"b:1","outcome":"truncated","cache":"cached","queue_s":0.001,"wait_s":0.1,"ttfb_s":0.5,`+
		`"attempts":[{"upstream":"a:1","outcome":"refused","start_s":0,"end_s":0.001},{"upstream":"b:1","outcome":"answered","start_s":0.001,"end_s":1}]}`+"\n"+
		`{"offset":0,"priority":"low","kind":"process","after":null,"outcome":"shed","queue_s":0}`+"\n", string(text))
	info, err := os.Stat(c.settings.Load().Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it names projects")
	written, lost := c.Counts()
	assert.Equal(t, []uint64{3, 0}, []uint64{written, lost})
}

// A job that came when its session's job before had ended may have waited for it.
func TestSessionsKeepTheirOrder(t *testing.T) {
	c := capture(t, func(*Config) {})
	for _, j := range []*record.Job{c.job("a", 0), c.job("b", 0.5), c.job("a", 0.75), c.job("a", 2), c.job("b", 1.5), c.job("", 3), c.job("", 5)} {
		c.Add(j)
	}
	c.finish()
	var after []trace.Line
	for _, j := range read(t, c.settings.Load().Path) {
		after = append(after, j.After)
	}
	//                             0  0.5 0.75 1.5 2  3  5
	assert.Equal(t, []trace.Line{0, 0, 0, 2, 3, 0, 0}, after)
}

func TestSessionsAreBounded(t *testing.T) {
	f, err := newFile(filepath.Join(t.TempDir(), "jobs.jsonl"), 0)
	require.NoError(t, err)
	defer f.f.Close()
	for session := range uint64(maxSessions + 1) {
		require.NoError(t, f.write(&line{session: session + 1}))
	}
	assert.Len(t, f.last, 1, "the rest began anew")
}

func TestShare(t *testing.T) {
	c := capture(t, func(cfg *Config) { cfg.Share = 0.25 })
	for i := range 2000 {
		c.Add(c.job(fmt.Sprint("session ", i/2), float64(i)))
	}
	for i := range 100 {
		c.Add(c.job("", 3000+float64(i)))
	}
	c.finish()
	jobs := read(t, c.settings.Load().Path)
	followed := 0
	for _, j := range jobs {
		if j.After > 0 {
			followed++
		}
	}
	assert.Equal(t, len(jobs)-25, 2*followed, "both jobs of a session or none, and a quarter of those without")
	assert.InDelta(t, 250, followed, 50)
}

func TestRotation(t *testing.T) {
	c := capture(t, func(cfg *Config) { cfg.Rotate, cfg.Keep = 64<<10, 2 })
	require.NoError(t, os.WriteFile(c.settings.Load().Path, []byte("{\"offset\":1}\n"), 0o600))
	const n = 1000
	for i := range n {
		c.Add(c.job("a", 2*float64(i)))
	}
	c.finish()
	written, lost := c.Counts()
	assert.Equal(t, []uint64{n, 0}, []uint64{written, lost})
	total := 0
	for _, path := range []string{c.settings.Load().Path + ".2", c.settings.Load().Path + ".1", c.settings.Load().Path} {
		jobs := read(t, path)
		total += len(jobs)
		assert.Zero(t, jobs[0].After, "each file is a trace by itself")
		assert.Equal(t, trace.Line(1), jobs[1].After)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(2*64<<10))
	}
	assert.Less(t, total, n, "the oldest went")
	assert.NoFileExists(t, c.settings.Load().Path+".3")

	c = capture(t, func(cfg *Config) { cfg.Keep = 0 })
	require.NoError(t, os.WriteFile(c.settings.Load().Path, []byte("old"), 0o600))
	c.Add(c.job("", 0))
	c.finish()
	assert.Len(t, read(t, c.settings.Load().Path), 1)
	assert.NoFileExists(t, c.settings.Load().Path+".1")
}

// Nobody writes: jobs are not delayed, and what does not fit into memory is counted.
func TestLinesAreLostRatherThanJobsDelayed(t *testing.T) {
	c := capture(t, func(*Config) {})
	for i := range held + 10 {
		c.Add(c.job("", float64(i)))
	}
	_, lost := c.Counts()
	assert.Equal(t, uint64(10), lost)
	c.finish()
	written, lost := c.Counts()
	assert.Equal(t, []uint64{held, 10}, []uint64{written, lost})
}

func TestAFileThatCannotBeWritten(t *testing.T) {
	var failures []error
	failed := func(cfg *Config) { cfg.Failed = func(err error) { failures = append(failures, err) } }
	c := capture(t, func(cfg *Config) { failed(cfg); cfg.Path = filepath.Join(cfg.Path, "no", "folder") })
	for range 5 {
		c.Add(c.job("", 0))
	}
	c.finish()
	written, lost := c.Counts()
	assert.Equal(t, []uint64{0, 5}, []uint64{written, lost})
	require.Len(t, failures, 1, "once, not for each line")
	assert.ErrorContains(t, failures[0], "capture: open ")

	failures = nil
	c = capture(t, func(cfg *Config) { failed(cfg); cfg.Path = filepath.Dir(cfg.Path) })
	c.Add(c.job("", 0))
	c.finish()
	require.Len(t, failures, 1)
	assert.ErrorContains(t, failures[0], "is not a file that can be put aside")

	failures = nil
	c = capture(t, failed)
	w := writer{c: c, settings: *c.settings.Load()}
	for range 3 {
		w.write(&line{job: c.job("", 0).Trace(c.start)})
	}
	require.NoError(t, w.file.f.Close()) // as if the disk were full
	w.flush()
	w.write(&line{})
	written, lost = c.Counts()
	assert.Equal(t, []uint64{0, 4}, []uint64{written, lost}, "those in memory, and one that came before the next try")
	assert.Len(t, failures, 1)
}

// What a trace may not say is lost alone.
func TestALineThatMakesNoSense(t *testing.T) {
	c := capture(t, func(*Config) {})
	j := c.job("", 0)
	j.Facts.Stream = -time.Second
	c.Add(j)
	c.Add(c.job("", 1))
	c.finish()
	written, lost := c.Counts()
	assert.Equal(t, []uint64{1, 1}, []uint64{written, lost})
	assert.Len(t, read(t, c.settings.Load().Path), 1)
}

func TestWithoutAPath(t *testing.T) {
	c, err := New(Config{Settings: Default()})
	require.NoError(t, err)
	c.Add(c.job("", 0))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	c.Run(ended)
	written, lost := c.Counts()
	assert.Zero(t, written+lost)
}

// Settings that change take effect for the jobs that end from then on. What waits is
// written where it would have been. A new path is tried at once, though the one before
// failed.
func TestSettingsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Settings: Default()}
		c, err := New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { c.Run(ctx); close(ended) }()
		c.Add(c.job("", 0)) // nowhere
		folder, settings := t.TempDir(), Default()
		for i, name := range []string{"no/folder", "first", "second", ""} {
			settings.Path = ""
			if name != "" {
				settings.Path = filepath.Join(folder, name)
			}
			c.SetSettings(settings)
			c.SetSettings(settings)
			synctest.Wait()
			for range i + 1 {
				c.Add(c.job("", float64(i)))
			}
		}
		cancel()
		<-ended
		assert.Len(t, read(t, filepath.Join(folder, "first")), 2)
		assert.Len(t, read(t, filepath.Join(folder, "second")), 3)
		written, lost := c.Counts()
		assert.Equal(t, []uint64{5, 1}, []uint64{written, lost})
	})
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"rotate: 1 must be at least 65536":                                      func(s *Settings) { s.Rotate = 1 },
		"keep: -1 is not between 0 and 1000":                                    func(s *Settings) { s.Keep = -1 },
		`share: 0 is not a share above 0 and up to 1; path: "" writes no job`:   func(s *Settings) { s.Share = 0 },
		"share: 2 is not a share above 0 and up to 1; path: \"\" writes no job": func(s *Settings) { s.Share = 2 },
	} {
		s := Default()
		change(&s)
		var f settings.Faults
		s.Check(&f)
		assert.EqualError(t, f.Err(), want)
		_, err := New(Config{Settings: s})
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "capture: "))
	}
	var f settings.Faults
	Default().Check(&f)
	assert.NoError(t, f.Err())
}

func BenchmarkAdd(b *testing.B) {
	cfg := Config{Settings: Default()}
	cfg.Path = filepath.Join(b.TempDir(), "jobs.jsonl")
	c, err := New(cfg)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	j := c.job("", 0)
	b.ReportAllocs()
	for b.Loop() {
		c.Add(j)
	}
	cancel()
	<-ended
}
