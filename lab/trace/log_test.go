package trace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// logged returns a sidecar's log of these jobs, which are sorted by end, with another line
// before each.
func logged(t *testing.T, jobs ...*record.Job) string {
	t.Helper()
	var out bytes.Buffer
	log, err := logging.New(&out, "info")
	require.NoError(t, err)
	for _, r := range jobs {
		log.Info("the upstream works again", zap.String("upstream", "a:1"))
		log.Job(logging.Default(), r)
	}
	require.NoError(t, log.Sync())
	return out.String()
}

// served returns a job with this arrival and duration, in seconds.
func served(after, took float64, project string) *record.Job {
	total := Duration(took)
	return &record.Job{
		Arrived: begin.Add(Duration(after)), Read: intake.Full,
		Facts:   intake.Facts{Project: project},
		Outcome: intake.Answered, Completeness: intake.Complete, Total: total,
		Attempts: []record.Attempt{{
			Upstream: "a:1", Outcome: pool.Answered, Cache: selection.Cached, End: total, Hint: &pool.Hint{Waited: 500 * time.Millisecond, Fetched: -1},
		}},
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// In older logs the field response is called answer.
func TestOlderLogsAreRead(t *testing.T) {
	lost := served(1, 2, "1")
	lost.Completeness = intake.Absent
	text := logged(t, lost, served(2, 2, "1"))
	for _, text := range []string{text, strings.ReplaceAll(text, `"response":`, `"answer":`)} {
		logs, err := ReadLogs(1000, nil, file(t, text))
		require.NoError(t, err)
		require.Len(t, logs.entries, 2)
		assert.Equal(t, []bool{false, true}, []bool{logs.entries[0].answered, logs.entries[1].answered})
	}
}

// The jobs of two sidecars are sorted by arrival.
func TestLogsAreMerged(t *testing.T) {
	cold := served(2, 5.5, "2")
	cold.Attempts[0].Cache, cold.Attempts[0].Hint.Fetched = selection.NotCached, time.Second
	high := served(4, 2, "1")
	high.Facts.Priority = selection.High
	refused := &record.Job{Arrived: begin.Add(3 * time.Second), Read: intake.Full, Outcome: intake.Shed, Facts: intake.Facts{Project: "1"}}
	rejected := &record.Job{Arrived: begin, Read: intake.Full, Outcome: intake.Rejected}
	unread := &record.Job{Arrived: begin, Read: intake.Unread, Outcome: intake.Answered}
	a := file(t, logged(t, rejected, served(1, 2, "1"), refused, high, cold))
	b := file(t, "2026-01-02 host pilotfish: "+logged(t, unread, served(1.5, 2, "1"), served(3, 2, "1"), served(8, 2, "2")))

	logs, err := ReadLogs(1000, nil, a, b)
	require.NoError(t, err)
	jobs, notes := logs.Estimate(9, 0), logs.Notes
	require.Len(t, jobs, 7)
	var got []any
	for _, j := range jobs {
		got = append(got, j.Offset, j.Project, j.Submitter)
	}
	assert.Equal(t, "[0 1 0 0.5 1 1 1 2 0 2 1 0 2 1 1 3 1 0 7 2 1]", fmt.Sprint(got))
	assert.Equal(t, selection.High, jobs[5].Priority)
	assert.Equal(t, []string{"1 1.5", "1 1.5", "1 4", "1 1.5"}, costsOf(jobs[:4]), "no fetch of project 1 is known: as for all; the last one was refused")
	assert.Equal(t, []string{
		a + ": 4 jobs that ended from 2026-01-02T03:04:08Z to 2026-01-02T03:04:12Z",
		b + ": 3 jobs that ended from 2026-01-02T03:04:08Z to 2026-01-02T03:04:15Z",
	}, notes)
}

// costsOf formats the fetches and the work of jobs, in seconds.
func costsOf(jobs []Job) (list []string) {
	for _, j := range jobs {
		list = append(list, fmt.Sprint(ms(j.Load), ms(j.Operators)))
	}
	return list
}

func ms(s float64) float64 { return float64(Duration(s).Round(time.Millisecond)) / 1e9 }

// A line that cannot be read is reported with file and line.
func TestUnreadableLinesAreNamed(t *testing.T) {
	whole := logged(t, served(0, 2, "1"), served(300, 2, "1"), served(310, 2, "1"))
	path := file(t, "panic: oh\n"+strings.Replace(whole, `"priority":"low"`, `"priority":"urgent"`, 1)+`{"level":"info","ts":"2026-01`+"\n"+whole[:30])
	logs, err := ReadLogs(1000, nil, path)
	require.NoError(t, err)
	assert.Len(t, logs.Estimate(0, 0), 2)
	require.Len(t, logs.Notes, 2)
	assert.Equal(t, path+`: line 1: is neither JSON nor in a known form: panic: oh (left out; 4 such lines)`, logs.Notes[1])
}

func TestLogsWithoutAJobAreRefused(t *testing.T) {
	_, err := ReadLogs(1, nil, file(t, logged(t, &record.Job{Outcome: intake.Rejected})))
	require.ErrorContains(t, err, "a.log: none of 2 lines is about a job")
	_, err = ReadLogs(1, nil, file(t, `{"offset":0}`))
	require.ErrorContains(t, err, "a.log: line 1: field duration: is missing: {\"offset\":0} (left out; 1 such lines)")
	_, err = ReadLogs(1, nil, "absent.log")
	require.ErrorContains(t, err, "absent.log")
}

// job returns the entry of a successful job of upstream x.
func job(project Project, at, took float64) entry {
	return entry{upstream: "x", job: Job{Project: project, Offset: at}, end: at + took, took: took, most: took, answered: true}
}

// estimated returns the costs under the assumption that an upstream runs this many jobs at a
// time.
func estimated(cores int, all ...entry) []string {
	return costsOf((&Logs{entries: slices.Clone(all)}).Estimate(cores, 0))
}

func TestCostsWithReportedWaitsAndFetches(t *testing.T) {
	waited, cold, other := job("a", 0, 5), job("a", 6, 4), job("b", 20, 4)
	waited.most, cold.most, cold.cold, cold.job.Load = 2, 3.5, true, 1.5
	refused := entry{job: Job{Project: "a", Offset: 11}, end: 11}
	assert.Equal(t, []string{"1.5 2", "1.5 2", "1.5 2", "1.5 4"}, estimated(4, waited, cold, refused, other),
		"a refused job costs what other jobs of its project do; a project whose fetches are unknown costs what all do")
}

// One job runs at a time.
func TestWaitsAreRebuilt(t *testing.T) {
	miss := job("a", 0, 5)
	miss.cold = true
	all := []entry{miss, job("a", 6, 2), job("a", 7, 3), job("a", 7.5, 4.5), job("a", 8, 1), job("b", 20, 1)}
	assert.Equal(t, []string{"3 2", "3 2", "3 2", "3 2", "3 1", "3 1"}, estimated(1, all...), "the last job of a ended before its turn")
	assert.Equal(t, []string{"3 2", "3 2", "3 3", "3 4.5", "3 1", "3 1"}, estimated(9, all...), "no job waited")
	assert.Equal(t, []string{"3 2", "3 2", "3 2"}, estimated(2, miss, job("a", 1, 4), job("a", 9, 2)), "the second one waited for the fetch")
}

// A job waits for the job before it in its session, if that had ended when it arrived.
func TestJobsOfASessionWait(t *testing.T) {
	logs, err := ReadLogs(100, nil, file(t, "time,id,session,duration,priority\n0.5,a,s,1,high\n1.5,b,s,1,high\n2,c,s,1,high\n2.5,d,r,1,high\n3.5,e,s,1,high\n9.5,f,,1,high\n9.6,g,,1,high\n"))
	require.NoError(t, err)
	jobs, ids := logs.Identified()
	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g"}, ids)
	after := func(jobs []Job) (lines []Line) {
		for _, j := range jobs {
			lines = append(lines, j.After)
		}
		return lines
	}
	assert.Equal(t, []Line{0, 1, 0, 0, 3, 0, 0}, after(jobs))
	jobs[2].After = 2
	assert.Equal(t, []Line{0, 1, 0}, after(Only(jobs, []int{0, 4, 5})), "e waits for c, that for b, and that for a")
	assert.Equal(t, "high", jobs[0].Priority.String())
}

// A published trace is read without changes.
func TestPrompts(t *testing.T) {
	jobs, err := Prompts("../../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, jobs, 12_031)
	assert.Equal(t, Job{Read: 2290, Write: 316, Blocks: []int64{0, 42, 43, 44, 45}, Submitter: 4}, jobs[3])
	assert.Equal(t, 15.0, jobs[59].Offset)
	chats, err := Prompts(file(t, `{"input_length":1500,"hash_ids":[0,1,2]}{"input_length":600,"hash_ids":[0,3]}{"input_length":2100,"hash_ids":[0,1,4,5]}`))
	require.NoError(t, err)
	for i, chat := range []int64{1, 2, 1} {
		assert.Equal(t, chat, chats[i].Submitter)
	}
	for text, want := range map[string]string{
		"": "request 1: EOF",
		`{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [0, 1]}`: "request 1: hash_ids has 2 blocks: a prompt of this input_length has at most 1",
		`{"timestamp": 0, "input_length": 512, "output": 1, "hash_ids": [0]}`:           "unknown object member name",
		`{"timestamp": 9, "input_length": 1}{"timestamp": 8, "input_length": 1}`:        "request 2: timestamp 8 is not between",
		`{"timestamp": 0, "input_length": -1}`:                                          "request 1: input_length or output_length is not between",
		`{"input_length": 9, "hash_ids": [2]}`:                                          "request 1: hash_ids: the next new block must be 0, not 2",
	} {
		_, err := Prompts(file(t, text))
		assert.ErrorContains(t, err, want)
	}
}
