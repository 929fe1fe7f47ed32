package trace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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

// logged is what a sidecar logs of such jobs, which are in the order of their ends, with a
// line about something else before each.
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

// served is a job that came after some seconds and took so long.
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

// The jobs of two sidecars are in the order in which they came.
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

	logs, err := ReadLogs(a, b)
	require.NoError(t, err)
	jobs, notes := logs.Jobs, logs.Notes
	require.Len(t, jobs, 7)
	type line struct {
		offset    float64
		project   Project
		submitter int64
	}
	var got []line
	for _, j := range jobs {
		got = append(got, line{j.Offset, j.Project, j.Submitter})
	}
	assert.Equal(t, []line{{0, "1", 0}, {0.5, "1", 1}, {1, "2", 0}, {2, "1", 0}, {2, "1", 1}, {3, "1", 0}, {7, "2", 1}}, got)
	assert.Equal(t, selection.High, jobs[5].Priority)
	assert.Equal(t, Job{Project: "1", Load: 1, Operators: 1.5}, rounded(jobs[0]), "nobody saw its project fetched: as all")
	assert.Equal(t, Job{Offset: 1, Project: "2", Load: 1, Operators: 4}, rounded(jobs[2]))
	assert.Equal(t, Job{Offset: 2, Project: "1", Load: 1, Operators: 1.5}, rounded(jobs[3]), "one that was refused costs what its project's jobs do")
	assert.Equal(t, []string{
		a + ": 4 jobs that ended from 2026-01-02T03:04:08Z to 2026-01-02T03:04:12Z",
		b + ": 3 jobs that ended from 2026-01-02T03:04:08Z to 2026-01-02T03:04:15Z",
	}, notes)
}

// rounded is a job with costs in milliseconds.
func rounded(j Job) Job {
	for _, v := range []*float64{&j.Load, &j.Operators} {
		*v = float64(Duration(*v).Round(time.Millisecond)) / 1e9
	}
	return j
}

// What cannot be read is reported with file and line.
func TestUnreadableLinesAreNamed(t *testing.T) {
	whole := logged(t, served(0, 2, "1"), served(300, 2, "1"), served(310, 2, "1"))
	path := file(t, "panic: oh\n"+strings.Replace(whole, `"priority":"low"`, `"priority":"urgent"`, 1)+`{"level":"info","ts":"2026-01`+"\n"+whole[:30])
	logs, err := ReadLogs(path)
	require.NoError(t, err)
	assert.Len(t, logs.Jobs, 2)
	require.Len(t, logs.Notes, 2)
	assert.Equal(t, path+`: line 3: field priority: unknown priority "urgent": it is high or low (left out; 3 such lines)`, logs.Notes[1])
}

func TestLogsWithoutAJobAreRefused(t *testing.T) {
	_, err := ReadLogs(file(t, logged(t, &record.Job{Outcome: intake.Rejected})))
	require.ErrorContains(t, err, "a.log: there is no job in the log")
	_, err = ReadLogs(file(t, `{"offset":0}`))
	require.ErrorContains(t, err, "a.log: line 1: field key: is missing (left out; 1 such lines)")
	_, err = ReadLogs("absent.log")
	require.ErrorContains(t, err, "absent.log")
}

// answered is an entry of a project's job that was answered.
func answered(project Project, cold bool, wait *float64, took float64) entry {
	return entry{job: Job{Project: project}, answered: true, took: took, wait: wait, cold: cold}
}

func costsOf(all ...entry) (list []string) {
	estimate(all)
	for _, e := range all {
		list = append(list, fmt.Sprint(e.job.Load, e.job.Operators))
	}
	return list
}

func TestCostsWhereWaitsAndFetchesAreTold(t *testing.T) {
	cold := answered("a", true, new(0.5), 4)
	cold.job.Load = 1.5
	assert.Equal(t, []string{"1.5 2", "1.5 2", "1.5 2", "1.5 4"}, costsOf(
		answered("a", false, new(3.0), 5),
		cold,
		entry{job: Job{Project: "a"}},     // refused: as the project's others
		answered("b", false, new(0.0), 4), // nobody saw it fetched: as all
	))
}

func TestCostsWhereNothingIsTold(t *testing.T) {
	var all []entry
	for _, first := range []float64{1, 1, 2, 9, 30} { // with more and more waiting
		all = append(all, answered("a", false, nil, first))
	}
	got := costsOf(append(all, answered("a", true, nil, 5))...)
	assert.Equal(t, []string{"3 1", "3 1", "3 1", "3 1", "3 1", "3 1"}, got)
}
